#include "actors/company/admission.hpp"

#include "actors/company/limits.hpp"
#include "actors/company/pass.hpp"
#include "runtime/cluster/limits.hpp"
#include "runtime/core/find_value.hpp"
#include "runtime/core/plain_name.hpp"
#include "runtime/core/secret.hpp"

#include <algorithm>

namespace troupe::actors::company {
namespace {

core::Failure turn_away(std::string why, std::string_view advice = {}) {
  return core::fail(core::ErrorCode::kInvalidArgument, std::move(why), advice);
}

// "node/gpu1": a kind and a name.
bool well_formed(const std::string& name) {
  const auto slash = name.find('/');
  constexpr std::size_t kMost = cluster::limits::kPeerName_bytes_max;
  return slash != name.npos && name.size() <= kMost &&
         core::is_plain_name(name.substr(0, slash), kMost) &&
         core::is_plain_name(name.substr(slash + 1), kMost);
}

}  // namespace

std::string Admission::issue_pass() {
  const std::lock_guard lock(mutex_);
  if (passes_.size() >= limits::kPasses_max) passes_.pop_front();
  passes_.push_back(make_pass({run_, ++last_number_}));
  return passes_.back();
}

core::Result<void> Admission::admit(const wire::Hello& hello, const std::string& origin) {
  if (!well_formed(hello.name)) {
    return turn_away(std::string("a name ") + core::kPlainNameRule, "give another --name");
  }
  const std::lock_guard lock(mutex_);
  return hello.name.starts_with("node/") ? admit_node(hello, origin) : admit_role(hello, origin);
}

core::Result<void> Admission::admit_node(const wire::Hello& hello, const std::string& origin) {
  const auto pass = std::find_if(passes_.begin(), passes_.end(), [&](const std::string& known) {
    return core::same_secret(hello.pass, known);
  });
  const auto before = std::find_if(gone_.begin(), gone_.end(), [&](const Gone& one) {
    return one.name == hello.name && core::same_secret(hello.pass, one.pass);
  });
  if (guests_.contains(hello.name) && (pass != passes_.end() || holds(hello))) {
    return turn_away("a node named " + hello.name.substr(5) + " is there already",
                     "give this one another --name");
  }
  if (pass == passes_.end() && before == gone_.end()) {
    return turn_away(hello.name + " brings no valid pass");
  }
  if (const auto facts = facts_of_pass(hello.pass); !facts || facts->number != hello.epoch) {
    return turn_away(hello.name + " of epoch " + std::to_string(hello.epoch) +
                     " brings the pass of another epoch");
  }
  if (pass != passes_.end()) passes_.erase(pass);
  if (before != gone_.end()) gone_.erase(before);
  Guest& guest = guests_[hello.name];
  guest.origin = origin;
  guest.pass = hello.pass;
  return {};
}

bool Admission::holds(const wire::Hello& hello) const {
  const Guest* const guest = core::find_value(guests_, hello.name);
  return guest != nullptr && core::same_secret(hello.pass, guest->pass);
}

core::Result<void> Admission::admit_role(const wire::Hello& hello, const std::string& origin) {
  const auto guest = std::find_if(guests_.begin(), guests_.end(),
                                  [&](const auto& one) { return one.second.origin == origin; });
  if (guest == guests_.end())
    return turn_away(hello.name + " comes from a process that has not joined");
  const std::uint64_t* const expected = core::find_value(guest->second.expected, hello.name);
  if (expected != nullptr && *expected == hello.epoch) return {};
  if (guest->second.kinds.contains(hello.name.substr(0, hello.name.find('/')))) {
    // A guest chooses the name; it takes no role's of the run.
    const bool is_ours = std::any_of(guests_.begin(), guests_.end(), [&](const auto& one) {
      return one.second.expected.contains(hello.name);
    });
    if (!is_ours) return {};
    return turn_away(hello.name + " is a role of the run", "choose another --name");
  }
  return turn_away(hello.name + " was not started on " + guest->first);
}

void Admission::expect(const std::string& node, const std::string& role, std::uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  if (Guest* const guest = core::find_value(guests_, node)) guest->expected[role] = epoch;
}

void Admission::allow_kind(const std::string& node, const std::string& kind) {
  const std::lock_guard lock(mutex_);
  if (Guest* const guest = core::find_value(guests_, node)) guest->kinds.insert(kind);
}

void Admission::forget(const std::string& node) {
  const std::lock_guard lock(mutex_);
  const auto guest = guests_.extract(node);
  if (guest.empty()) return;
  if (gone_.size() >= limits::kPasses_max) gone_.pop_front();
  gone_.push_back({node, guest.mapped().pass});
}

std::string Admission::pass_of(const std::string& node) const {
  const std::lock_guard lock(mutex_);
  const Guest* const guest = core::find_value(guests_, node);
  return guest == nullptr ? "" : guest->pass;
}

std::string Admission::node_of(const std::string& origin) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, guest] : guests_) {
    if (guest.origin == origin) return name;
  }
  return "";
}

}  // namespace troupe::actors::company
