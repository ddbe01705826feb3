// The experience log of a run, RUN/experience/: every event of the ticket books since the last
// checkpoint, one file for each update and the evaluations after it. What was sampled and scored is
// on disk before the policy learns from it, or an evaluation counts. A run that resumes from a
// checkpoint so learns again from the same groups without sampling them, with the same bits; open
// tickets keep their groups, evaluations their results. What was in an engine only is sampled
// again. Owned by the data role, used on its strand; files are read and written on the role's
// device queue. Bounded by ckpt.log_bytes_max, at which a checkpoint is made.
#pragma once

#include "actors/data/book_events.hpp"
#include "actors/data/rare_note.hpp"
#include "actors/data/scorer.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/store/step_log.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors::data {

// What a log holds for a run that resumes after `first_update` updates.
struct LoggedRun {
  std::uint64_t first_update = 0;
  std::uint64_t updates = 0;            // from first_update on, without a gap
  std::uint64_t groups = 0;             // of these, taken
  std::vector<TicketIssued> issued;     // the last attempt of each slot
  std::vector<SetRewards> sets;         // changes of rewards, by number
  std::set<std::uint64_t> evaluations;  // begun after first_update updates or later, by number
  std::vector<std::string> notes;       // of damage, for the user

  std::uint64_t end() const noexcept { return first_update + updates; }
};

// The versions at the start of updates before `first_update`, which tickets of a run with this
// staleness bound were issued with; by update.
std::map<std::uint64_t, core::Version> earlier_starts(const LoggedRun& logged,
                                                      std::uint64_t staleness_max);

// Reads a log, and removes from it what does not belong to this run: files behind a gap or a
// damaged end, which notes tell. Blocks. Errors: the disk's.
core::Result<LoggedRun> read_log(const store::StepLog& log, std::uint64_t first_update);

// One more than the highest position of the prompt stream that newest tickets of a log have or had;
// 0: there are none. Damage is passed over. Blocks. Errors: the disk's.
core::Result<std::uint64_t> positions_end(const store::StepLog& log);

struct GroupLogOptions {
  std::filesystem::path folder;  // "": nothing is kept
  store::Disk* disk = &store::system_disk();
  LoggedRun found;                                   // what earlier lives of the run left there
  std::shared_ptr<store::KeptFiles> kept = nullptr;  // the run folder's
  // False once the run folder is gone: nothing is written to its place then. Any thread.
  std::function<bool()> here = [] { return true; };
};

class GroupLog final : public BookListener {
 public:
  GroupLog(const RoleContext& context, GroupLogOptions options, Note note);

  bool kept() const noexcept { return !options_.folder.empty(); }
  void on_event(const BookEvent& event) override;

  // Waits until all events so far are on disk. Error: why they cannot be written; they are kept,
  // and writing is tried again.
  async::task<core::Result<void>> durable();

  // What earlier lives left; empty the second time.
  LoggedRun take_found() { return std::exchange(options_.found, {}); }
  // True while the update, or evaluation, has events of an earlier life that were not taken; `take`
  // gives them, of an evaluation those since it last began.
  bool holds(std::uint64_t update) const { return held_.contains(update); }
  async::task<core::Result<std::vector<BookEvent>>> take(std::uint64_t update);
  // All that is on disk of an update or evaluation, of this life, too.
  async::task<core::Result<std::vector<BookEvent>>> read(std::uint64_t update);

  std::uint64_t written() const noexcept { return written_; }  // events

 private:
  async::task<void> keep_writing();
  async::task<void> pause(core::Duration span);

  RoleContext context_;
  GroupLogOptions options_;
  store::StepLog log_;
  RareNote note_;
  async::Notifier wake_;          // a caller waits: writing is urgent
  async::Notifier written_more_;  // something was written, or could not be
  std::uint64_t added_ = 0;       // events
  std::uint64_t written_ = 0;
  std::uint64_t failures_ = 0;
  std::optional<core::Error> error_;  // of the last failure
  bool urgent_ = false;               // a caller waits
  bool writing_ = false;
  std::set<std::uint64_t> held_;  // updates and evaluations of earlier lives
};

}  // namespace troupe::actors::data
