// The order of a supervised run: when to take a step, evaluate, save and stop. A pure state
// machine; the caller says what happened and what it sees outside, and asks what comes next.
//
// A run takes `steps` steps. It evaluates before the first, after every `evaluation_steps` and
// after the last; it saves after every `save_steps`, after the last, when the time for it has come,
// after the best evaluation so far, and when it is asked to stop. A checkpoint comes after the
// evaluation of the same step, so that whoever goes on from it has that evaluation already. A step
// that was begun is finished, also when a stop is asked for.
#pragma once

#include <cstdint>
#include <optional>

namespace troupe::actors::supervised {

enum class StepAct { kTrain, kEvaluate, kSave, kStop, kFinish };

struct StepRules {
  std::uint64_t steps = 0;             // of the whole run
  std::uint64_t first = 0;             // steps in the checkpoint that the session begins with
  bool evaluates = false;              // there are held-out rows
  std::uint64_t evaluation_steps = 0;  // 0: at the start and the end only
  std::uint64_t save_steps = 0;        // 0: by time and at the end
  // The evaluation after `first` steps was not made when the run stopped there.
  bool owes_evaluation = false;
};

// What the caller sees outside when it asks.
struct StepSigns {
  bool stop = false;     // the user asks to stop
  bool hurried = false;  // with a time limit: an evaluation waits for the resumed run
  bool due = false;      // time alone calls for a checkpoint
  bool best = false;     // the newest evaluation is the best so far
};

class StepLoop {
 public:
  // `known`: steps that the trainer has taken when the session begins, at least `rules.first`: it
  // lives on from an earlier head. Until then nothing is saved, as its state is that after `known`.
  StepLoop(const StepRules& rules, std::uint64_t known)
      : rules_(rules), known_(known), done_(rules.first) {
    if (done_ > 0 && !rules.owes_evaluation) evaluated_ = done_;
  }

  StepAct next(const StepSigns& signs) const {
    const bool fresh = done_ > rules_.first && done_ >= known_;
    const bool leaves = fresh && signs.hurried && !at_end();
    if (evaluation_is_due() && !leaves) return StepAct::kEvaluate;
    if (fresh && saved_ != done_ && wants_checkpoint(signs)) return StepAct::kSave;
    if (done_ >= rules_.steps) return StepAct::kFinish;
    return fresh && signs.stop ? StepAct::kStop : StepAct::kTrain;
  }

  void trained() { ++done_; }
  void evaluated() { evaluated_ = done_; }
  void saved() { saved_ = done_; }

  std::uint64_t done() const { return done_; }
  bool at_end() const { return done_ >= rules_.steps; }

 private:
  static bool every(std::uint64_t steps, std::uint64_t at) { return steps > 0 && at % steps == 0; }

  bool evaluation_is_due() const {
    if (!rules_.evaluates || evaluated_ == done_) return false;
    if (done_ == rules_.first && rules_.owes_evaluation) return true;
    return done_ == 0 || at_end() || every(rules_.evaluation_steps, done_);
  }
  bool wants_checkpoint(const StepSigns& signs) const {
    return at_end() || signs.stop || signs.due || signs.best || every(rules_.save_steps, done_);
  }

  const StepRules rules_;
  const std::uint64_t known_;
  std::uint64_t done_;
  std::optional<std::uint64_t> evaluated_, saved_;  // steps done then
};

}  // namespace troupe::actors::supervised
