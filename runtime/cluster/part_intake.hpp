// Reassembles the long messages that one role receives in parts. Parts may come in any order and
// more than once. A message that gets no part for kPartsSilence_max is forgotten, and so are those
// of a peer that is lost or has started again. A pure state machine on the role's strand. Bound:
// kMessages_bytes_max, reserved by a message's first part until `release`.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"
#include "runtime/wire/parts.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace troupe::cluster {

class PartIntake {
 public:
  // Errors: kOverloaded when the message does not fit with the others; kData when the message has
  // an invalid size, or the part does not belong to it.
  core::Result<void> put(const std::string& from,
                         std::uint64_t epoch,
                         const wire::Part& part,
                         core::TimePoint now);

  // Returns the whole message, whose bytes stay reserved until `release`; nothing when it was taken
  // before. Errors: kDeadline when parts are missing, and the message is dropped; kData
  // (malformed).
  core::Result<std::optional<wire::Frame>> take(const std::string& from,
                                                std::uint64_t epoch,
                                                std::uint64_t message);
  void release(std::uint64_t bytes) { bytes_ -= bytes; }

  void forget(const std::string& from);
  void forget_silent(core::TimePoint now);

  std::uint64_t bytes() const { return bytes_; }
  std::size_t open() const { return messages_.size(); }

 private:
  using Name = std::tuple<std::string, std::uint64_t, std::uint64_t>;  // from, epoch, number
  struct Message {
    std::vector<std::uint64_t> words;
    std::vector<bool> here;    // which parts have come
    std::size_t missing = 0;   // parts
    core::TimePoint newest{};  // when the newest part came
  };
  using Messages = std::map<Name, Message>;

  core::Result<Messages::iterator> begin(const Name& name, const wire::Part& part);
  Messages::iterator drop(Messages::iterator place);
  bool taken(const Name& name) const;

  Messages messages_;
  std::deque<Name> taken_;  // the newest; their parts may still come a second time
  std::uint64_t bytes_ = 0;
};

}  // namespace troupe::cluster
