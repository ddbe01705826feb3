// Versions of the weights on their way from one publisher to many receivers that pass them on, on
// virtual time, with the troubles of a plan. The publisher's plan is the real RelayBook; sockets,
// and what WeightServer and StreamFetch do with them, are done again here. Then it says what did
// not hold:
//   every receiver that lives gets the newest version within kProgress after the last trouble, and
//   only bytes of one version of one publisher; no more copies leave the publisher than
//   kWeightCopies_max, but for receivers that relays fail; and of each relay that a receiver is
//   sent to, what publisher.cpp checks.
#pragma once

#include "runtime/core/rng.hpp"
#include "tests/sim/relays/plan.hpp"
#include "tests/sim/relays/publisher.hpp"
#include "tests/sim/relays/receiver.hpp"

#include <list>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::sim {

class RelayWorld {
 public:
  static constexpr core::Duration kProgress = std::chrono::seconds(60);

  explicit RelayWorld(RelayPlan plan);
  RelayWorld(const RelayWorld&) = delete;
  RelayWorld& operator=(const RelayWorld&) = delete;
  ~RelayWorld();

  void run();
  // What did not hold; empty when all is well.
  const std::vector<std::string>& wrong() const { return truth_.wrong(); }
  const Census& census() const { return truth_.census; }
  // The most streams of one version that the publisher began.
  std::uint64_t copies_max() const;

 private:
  RelaySurroundings surroundings();
  void publish_next();
  void tell_all();
  void inject(const RelayTrouble& trouble);
  void restart(core::Duration pause);
  bool all_there() const;

  Receiver* find(std::uint32_t number);
  const Receiver* sender(const Stream& stream);
  bool open(std::uint32_t a, std::uint32_t b);  // processes, by number; 0: the publisher
  void disconnect(Receiver& from);
  void answer(std::uint32_t number, const RelayAsk& ask);
  void ask_relay(Receiver& from, std::uint32_t relay, const RelayAsk& ask, bool memory);
  void open_stream(std::uint32_t from, std::uint32_t to, ImagePtr image, std::uint32_t first);
  void end(Stream& stream);
  void pump(const StreamPtr& stream);
  void pump_all();
  void arrive(const StreamPtr& stream);
  void soon(std::function<void()> what);
  void send(std::uint32_t from, std::function<void()> what);
  void after(core::Duration span, std::function<void()> what);

  const RelayPlan plan_;
  cluster::sim::VirtualTime time_;
  Truth truth_;
  core::Rng rng_;
  Publisher publisher_;
  RelaySurroundings around_;
  std::vector<std::unique_ptr<Receiver>> receivers_;
  std::list<StreamPtr> streams_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> cuts_;  // of hosts; 0: the publisher's
  std::map<std::uint32_t, core::TimePoint> sent_;           // when the last of a receiver arrives
  std::uint32_t numbers_ = 0;
  std::uint64_t published_ = 0;
  core::TimePoint last_{};  // trouble, or version
};

}  // namespace troupe::sim
