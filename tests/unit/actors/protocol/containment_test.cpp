// The page that tells users what an error does, compared with the code that does it.
#include "actors/protocol/containment.hpp"

#include "runtime/weights/limits.hpp"
#include "runtime/weights/relay_book.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace troupe::actors {
namespace {

using core::ErrorCode;

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, '|');) {
    const auto first = cell.find_first_not_of(' ');
    if (first == cell.npos) continue;
    cells.push_back(cell.substr(first, cell.find_last_not_of(' ') - first + 1));
  }
  return cells;
}

// The rows of the page's table under this heading, without its two head lines.
std::vector<std::vector<std::string>> table_under(const std::string& heading) {
  const char* const root = std::getenv("TROUPE_SOURCE_DIR");
  std::ifstream page(std::filesystem::path(root != nullptr ? root : ".") / "docs/operations.md");
  std::vector<std::vector<std::string>> rows;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("##")) inside = line == heading;
    if (inside && line.starts_with("| ")) rows.push_back(cells_of(line));
  }
  if (!rows.empty()) rows.erase(rows.begin());
  return rows;
}

TEST(Containment, TheTableOfThePageIsTheCode) {
  const auto rows = table_under("## What an error of a role does");
  ASSERT_EQ(rows.size(), static_cast<std::size_t>(core::kErrorCodes));
  for (int code = 0; code < core::kErrorCodes; ++code) {
    const auto error = static_cast<ErrorCode>(code);
    std::vector<std::string> wanted = {std::string(core::error_name(error))};
    for (const AskedFor asked : {AskedFor::kSamples, AskedFor::kWeights, AskedFor::kScores,
                                 AskedFor::kUpdate, AskedFor::kFiles}) {
      wanted.emplace_back(kReactions[static_cast<std::size_t>(reaction_to(asked, error))]);
    }
    EXPECT_EQ(rows[static_cast<std::size_t>(code)], wanted);
  }
}

TEST(Containment, NoErrorOfAGeneratorOrAScorerEndsARun) {
  for (int code = 0; code < core::kErrorCodes; ++code) {
    for (const AskedFor asked : {AskedFor::kSamples, AskedFor::kWeights, AskedFor::kScores})
      EXPECT_NE(reaction_to(asked, static_cast<ErrorCode>(code)), Reaction::kEnded);
  }
  EXPECT_EQ(reaction_to(AskedFor::kUpdate, ErrorCode::kNumeric), Reaction::kEnded);
}

TEST(Containment, EachRequestOfARoleHasItsColumn) {
  const std::vector<std::vector<std::string>> wanted = {
      {"a generator", "to sample a ticket", "samples"},
      {"a generator", "to take new weights", "weights"},
      {"a reward, the reference", "to score a group", "scores"},
      {"policy, critic", "to learn from an update", "update"},
      {"the policy of a supervised method", "to take a step", "update"},
      {"the policy of a supervised method", "to evaluate the held-out rows", "update"},
      {"a rank beyond the first", "to do its part of these", "update"},
      {"policy, critic, data", "to write a checkpoint", "files"}};
  EXPECT_EQ(table_under("### Whose error counts as what"), wanted);
}

// ---- relays: receivers 1 to 4 get a version from the publisher, 5 gets it from one of them ----

using weights::RelayFault;

class Relays {
 public:
  Relays() {
    for (std::uint32_t number = 1; number <= 4; ++number)
      ask(number);
    relay_ = ask(5);
    for (std::uint32_t number = 1; number <= 5; ++number)
      have(number, 20);
  }
  std::uint32_t relay() const { return relay_; }
  std::uint32_t another() const { return relay_ == 2 ? 3 : 2; }
  void have(std::uint32_t number, std::uint32_t buckets) { book_.progress(number, buckets, now_); }
  void wait(core::Duration span) { now_ += span; }
  // 6 reads the memory of `relay`, on whose host it is.
  void lend() { memory_ = ask(6, RelayFault::kNone, relay_) == relay_; }

  // "leaves it" or "stays".
  std::string receiver(RelayFault fault) {
    const std::uint32_t now = memory_ ? ask(6, fault, relay_) : ask(5, fault);
    return now == relay_ ? "stays" : "leaves it";
  }
  // Whether one of twenty others is sent there.
  std::string others() {
    bool sent = false;
    for (std::uint32_t number = 10; number < 30; ++number)
      sent = ask(number) == relay_ || sent;
    return sent ? "are sent there" : "are not sent there";
  }
  std::string others_after_wrong_bytes() {
    const std::string first = others();
    ask(7, RelayFault::kWrong);
    return others() == "are not sent there" ? first + " until two have said so" : first;
  }

 private:
  std::uint32_t ask(std::uint32_t number,
                    RelayFault fault = RelayFault::kNone,
                    std::uint32_t host = 0) {
    weights::RelayBook::Ask ask;
    ask.place.number = number;
    ask.place.socket = "@socket";
    ask.place.address = "host:1";
    ask.host = host == 0 ? number : host;
    ask.turn = ++turn_;
    ask.content = {kernels::PanelDtype::kF32, 1, 100};
    ask.buckets = number == 5 && fault != RelayFault::kNone ? 20 : 0;
    ask.fault = fault;
    if (fault != RelayFault::kNone) ask.avoid = relay_;
    const auto place = book_.choose(ask, now_);
    return place ? place->number : 0;
  }

  weights::RelayBook book_;
  core::TimePoint now_ = core::TimePoint() + std::chrono::seconds(1000);
  std::uint64_t turn_ = 0;
  std::uint32_t relay_ = 0;
  bool memory_ = false;
};

TEST(Containment, WhatARelayDoesIsWhatThePageSays) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&rows](const char* what, RelayFault fault, auto before) {
    Relays relays;
    ASSERT_NE(relays.relay(), 0u);
    before(relays);
    const std::string receiver = relays.receiver(fault);
    const bool wrong = fault == RelayFault::kWrong;
    rows.push_back({what, receiver, wrong ? relays.others_after_wrong_bytes() : relays.others()});
  };
  add("is lost, or lets nobody connect", RelayFault::kLost, [](Relays&) {});
  add("gives wrong bytes", RelayFault::kWrong, [](Relays&) {});
  add("is silent, and holds buckets back", RelayFault::kSilent,
      [](Relays& relays) { relays.have(relays.relay(), 30); });
  add("is silent, and has got nothing itself for 2 s", RelayFault::kSilent,
      [](Relays& relays) { relays.wait(weights::limits::kRelayStuck); });
  add("is silent, and gets buckets itself", RelayFault::kSilent, [](Relays&) {});
  add("is silent, as its memory is not whole yet", RelayFault::kSilent,
      [](Relays& relays) { relays.lend(); });
  add("is slow, and another is far ahead", RelayFault::kSlow,
      [](Relays& relays) { relays.have(relays.another(), 90); });
  add("is slow, and no other is better", RelayFault::kSlow, [](Relays&) {});
  EXPECT_EQ(table_under("### What a relay can do"), rows);
}

}  // namespace
}  // namespace troupe::actors
