// Weights that are not always there. Where the ranks of a trainer have divided a model's weights
// among them, a pass through the model says which part it is about to compute; the gate brings that
// part's weights and takes them away again. The parts of a model in the order of a forward pass: 0
// is the embedding, 1 + i is layer i, layers + 1 is the final norm with the head. Called on the
// thread that starts the parallel regions, between them.
#pragma once

#include "runtime/core/error.hpp"
#include "runtime/core/range.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

namespace troupe::model {

class WeightsGate {
 public:
  virtual ~WeightsGate() = default;
  // Until `close`, the panels of `part` are there, and its master values too if `backward`. One
  // part is open at a time. Throws GateFailure.
  virtual void open(std::int64_t part, bool backward) = 0;
  virtual void close(std::int64_t part, bool backward) noexcept = 0;
};

// The weights of a part could not be fetched.
class GateFailure : public std::exception {
 public:
  explicit GateFailure(core::Error error) : error_(std::move(error)) {}
  const core::Error& error() const { return error_; }
  const char* what() const noexcept override { return error_.message.c_str(); }

 private:
  core::Error error_;
};

// Opens a part, if there is a gate, and closes it at the end of its scope.
class OpenPart {
 public:
  OpenPart(WeightsGate* gate, std::int64_t part, bool backward)
      : gate_(gate), part_(part), backward_(backward) {
    if (gate_ != nullptr) gate_->open(part_, backward_);
  }
  OpenPart(const OpenPart&) = delete;
  OpenPart& operator=(const OpenPart&) = delete;
  ~OpenPart() {
    if (gate_ != nullptr) gate_->close(part_, backward_);
  }

 private:
  WeightsGate* const gate_;
  const std::int64_t part_;
  const bool backward_;
};

inline std::int64_t parts_of(const ModelSpec& spec) {
  return spec.layers + 2;
}

// Where the weights of each part lie in the flat buffer, in ascending order. A tied embedding is in
// the first part and in the last.
std::vector<std::vector<core::Range>> ranges_of_parts(const ModelSpec& spec,
                                                      const ParamLayout& layout);

}  // namespace troupe::model
