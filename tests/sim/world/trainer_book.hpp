// What the fake trainers have in common: a list of what was learned in place of weights, the time
// that they take, their files on the world's disk, and the errors that the world gives.
#pragma once

#include "tests/sim/world/fake_engine.hpp"
#include "tests/sim/world/fake_trainers.hpp"

#include <cstdint>
#include <filesystem>
#include <utility>

namespace troupe::sim {

// State and time of a trainer.
class Book {
 public:
  Book(cluster::sim::VirtualTime& time, Truth& truth, DiskView& disk, TrainerFacts facts)
      : time_(time), truth_(truth), disk_(disk), facts_(std::move(facts)) {}

  std::uint64_t updates() const { return learned_.updates.size(); }
  core::Version version() const { return kStepsOfUpdate * updates(); }
  const TrainerFacts& facts() const { return facts_; }
  Truth& truth() const { return truth_; }

  core::Result<void> work(const std::string& what = "train") {
    time_.pass(facts_.step);
    if (auto error = truth_.error(facts_.role, what)) return core::fail(*error);
    return {};
  }
  void pass(core::Duration span) const { time_.pass(span); }
  void learn(std::uint64_t hash) { learned_.updates.push_back(hash); }
  std::uint64_t chain() const {
    std::uint64_t all = 0;
    for (const std::uint64_t one : learned_.updates)
      all = mix(all, one);
    return all;
  }

  core::Result<void> save(const std::filesystem::path& folder) const {
    if (auto error = truth_.error(facts_.role, "save")) return core::fail(*error);
    return disk_.write_file(folder / "state", learned_.text());
  }
  core::Result<void> load(const std::filesystem::path& folder) {
    TROUPE_TRY_ASSIGN(text, disk_.read_file(folder / "state"));
    TROUPE_TRY_SET(learned_, Learned::of(text));
    return {};
  }
  core::Result<void> save_model(const std::filesystem::path& folder,
                                const std::string& more = "") const {
    TROUPE_TRY(disk_.make_folder(folder));
    return disk_.write_file(folder / "model", learned_.text() + more);
  }

 private:
  cluster::sim::VirtualTime& time_;
  Truth& truth_;
  DiskView& disk_;
  const TrainerFacts facts_;
  Learned learned_;
};

// What all trainers have of their book.
template <class Trainer>
class OfBook : public Trainer {
 public:
  explicit OfBook(Book book) : book_(std::move(book)) {}

  const model::ParamStore& master() const override { return no_params(); }
  core::Version version() const override { return book_.version(); }
  core::Result<void> save_model(const std::filesystem::path& folder,
                                const std::filesystem::path&) const override {
    return book_.save_model(folder);
  }
  core::Result<void> save_state(const std::filesystem::path& folder) const override {
    return book_.save(folder);
  }
  core::Result<void> load_state(const std::filesystem::path& folder) override {
    return book_.load(folder);
  }

 protected:
  Book book_;
};

}  // namespace troupe::sim
