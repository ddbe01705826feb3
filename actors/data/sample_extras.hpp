// What rewards report of a sample beside its score: values by name, for the metrics (numbers) and
// the rollouts (all). Plain value, one a sample of the ticket book.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors {

struct SampleExtra {
  std::string name;
  std::optional<double> number;  // of a finite number; true is 1, false is 0
  std::string json;              // the value as it came
};

class SampleExtras {
 public:
  // `object`: a JSON object, or "" for nothing; what is none is left out, as are nested values. A
  // name that another reward of the set has taken becomes REWARD.NAME. At most kRewardExtras_max
  // names.
  void add(std::string_view reward, const std::string& object);

  const std::vector<SampleExtra>& all() const { return extras_; }

 private:
  bool has(std::string_view name) const;
  std::vector<SampleExtra> extras_;
};

}  // namespace troupe::actors
