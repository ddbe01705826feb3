// State machines that check themselves after each event. A machine has `check_invariants() const`,
// which returns what is broken, or ""; each public function that changes it begins with
// `const core::CheckedChange checked(*this);`. The check looks at all of the machine's state, so it
// runs only where the environment variable TROUPE_CHECK_INVARIANTS is set: in tests and in the
// simulator. A broken invariant is a bug: it is printed with the change, then the process aborts.
#pragma once

#include <source_location>
#include <string>

namespace troupe::core {

// Whether machines check themselves: where TROUPE_CHECK_INVARIANTS is set, unless told otherwise.
bool checks_invariants();
// For tests that count what a change costs. Any thread.
void check_invariants(bool wanted);
// Aborts if `broken` is not empty; `change`: the function after which it is.
void expect_whole(const std::string& broken, const std::source_location& change) noexcept;

template <class Machine>
class CheckedChange {
 public:
  explicit CheckedChange(const Machine& machine,
                         std::source_location change = std::source_location::current())
      : machine_(machine), change_(change) {
    ++depth();
  }
  CheckedChange(const CheckedChange&) = delete;
  CheckedChange& operator=(const CheckedChange&) = delete;
  // A change that is a part of another one may leave the machine in between.
  ~CheckedChange() {
    if (--depth() == 0 && checks_invariants()) expect_whole(machine_.check_invariants(), change_);
  }

 private:
  static int& depth() {
    thread_local int changes = 0;
    return changes;
  }
  const Machine& machine_;
  const std::source_location change_;
};

}  // namespace troupe::core
