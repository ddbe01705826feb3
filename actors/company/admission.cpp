#include "actors/company/admission.hpp"

#include "actors/limits.hpp"
#include "actors/company/pass.hpp"
#include "runtime/cluster/limits.hpp"

#include <algorithm>

namespace troupe::actors {
namespace {

core::Failure turn_away(std::string why) {
  return core::fail(core::ErrorCode::kInvalidArgument, std::move(why));
}

bool is_node(const std::string& name) {
  return name.starts_with("node/");
}

// What a name may consist of: it ends up in files, logs and terminals.
bool well_formed(const std::string& name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  const auto slash = name.find('/');
  return name.size() <= cluster::limits::kPeerName_bytes_max && slash != name.npos && slash > 0 &&
         slash + 1 < name.size() &&
         std::all_of(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(slash), plain) &&
         std::all_of(name.begin() + static_cast<std::ptrdiff_t>(slash) + 1, name.end(), plain);
}

// Compares every byte, whatever differs first.
bool equal_in_constant_time(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

}  // namespace

std::string Admission::issue_pass() {
  const std::lock_guard lock(mutex_);
  if (passes_.size() >= limits::kPasses_max) passes_.pop_front();
  passes_.push_back(make_pass(++last_number_));
  return passes_.back();
}

core::Result<void> Admission::admit(const wire::Hello& hello, const std::string& origin) {
  if (!well_formed(hello.name)) {
    return turn_away("a name may hold letters, digits, '-', '_' and '.'; give another --name");
  }
  const std::lock_guard lock(mutex_);
  return is_node(hello.name) ? admit_node(hello, origin) : admit_role(hello, origin);
}

core::Result<void> Admission::admit_node(const wire::Hello& hello, const std::string& origin) {
  const auto pass = std::find_if(passes_.begin(), passes_.end(), [&](const std::string& known) {
    return equal_in_constant_time(known, hello.pass);
  });
  const auto before = std::find_if(gone_.begin(), gone_.end(), [&](const Gone& one) {
    return one.name == hello.name && equal_in_constant_time(one.pass, hello.pass);
  });
  if (guests_.contains(hello.name) && (pass != passes_.end() || holds(hello))) {
    return turn_away("a node named " + hello.name.substr(5) +
                  " is there already; give this one another --name");
  }
  if (pass == passes_.end() && before == gone_.end()) {
    return turn_away(hello.name + " brings no valid pass");
  }
  if (const auto number = number_of_pass(hello.pass); !number || *number != hello.epoch) {
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
  const auto guest = guests_.find(hello.name);
  return guest != guests_.end() && equal_in_constant_time(guest->second.pass, hello.pass);
}

core::Result<void> Admission::admit_role(const wire::Hello& hello, const std::string& origin) {
  const auto guest = std::find_if(guests_.begin(), guests_.end(),
                                  [&](const auto& one) { return one.second.origin == origin; });
  if (guest == guests_.end())
    return turn_away(hello.name + " comes from a process that has not joined");
  const auto expected = guest->second.expected.find(hello.name);
  if (expected != guest->second.expected.end() && expected->second == hello.epoch) return {};
  if (guest->second.kinds.contains(hello.name.substr(0, hello.name.find('/')))) return {};
  return turn_away(hello.name + " was not started on " + guest->first);
}

void Admission::expect(const std::string& node, const std::string& role, std::uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  if (const auto guest = guests_.find(node); guest != guests_.end()) {
    guest->second.expected[role] = epoch;
  }
}

void Admission::allow_kind(const std::string& node, const std::string& kind) {
  const std::lock_guard lock(mutex_);
  if (const auto guest = guests_.find(node); guest != guests_.end())
    guest->second.kinds.insert(kind);
}

void Admission::forget(const std::string& node) {
  const std::lock_guard lock(mutex_);
  const auto guest = guests_.find(node);
  if (guest == guests_.end()) return;
  if (gone_.size() >= limits::kPasses_max) gone_.pop_front();
  gone_.push_back({node, guest->second.pass});
  guests_.erase(guest);
}

std::string Admission::node_of(const std::string& origin) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, guest] : guests_) {
    if (guest.origin == origin) return name;
  }
  return "";
}

}  // namespace troupe::actors
