// The values that rewards report for a sample besides its score, by name. Numbers go into the
// metrics, all values into the rollouts. A plain value; the ticket book has one per sample.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors::data {

struct SampleExtra {
  std::string name;
  std::optional<double> number;  // none unless it is a finite number or a bool (true is 1)
  std::string json;              // the value as it came
};

class SampleExtras {
 public:
  // Adds the values of `object`, a JSON object or ""; ignores any other text, and nested values. A
  // name that another reward of the set has taken becomes REWARD.NAME. Keeps at most
  // kRewardExtras_max names.
  void add(std::string_view reward, const std::string& object);

  const std::vector<SampleExtra>& all() const { return extras_; }

 private:
  bool has(std::string_view name) const;
  std::vector<SampleExtra> extras_;
};

}  // namespace troupe::actors::data
