#include "runtime/cluster/caf/core.hpp"

#include "runtime/cluster/caf/messages.hpp"

#include <caf/send.hpp>

#include <utility>

namespace troupe::cluster::exchange {

void Living::add(caf::actor_id id, std::string name) {
  const std::lock_guard lock(mutex_);
  names_.emplace(id, std::move(name));
}

void Living::remove(caf::actor_id id) {
  const std::lock_guard lock(mutex_);
  names_.erase(id);
  ended_.notify_all();
}

std::vector<std::string> Living::wait_until(core::TimePoint end) {
  std::unique_lock lock(mutex_);
  ended_.wait_until(lock, end, [this] { return names_.empty(); });
  std::vector<std::string> left;
  for (const auto& [id, name] : names_)
    left.push_back(name);
  return left;
}

void Core::count_in(const Parcel& parcel) {
  frames_in.fetch_add(1, std::memory_order_relaxed);
  if (parcel.frame) bytes_in.fetch_add(parcel.frame->size_bytes(), std::memory_order_relaxed);
}

void Core::count_out(const wire::Frame& frame) {
  frames_out.fetch_add(1, std::memory_order_relaxed);
  bytes_out.fetch_add(frame.size_bytes(), std::memory_order_relaxed);
}

void Core::refuse(const std::string& what) {
  refused.fetch_add(1, std::memory_order_relaxed);
  if (hooks.refused) hooks.refused(what);
}

// Sent through the roles' actors, so that the peer's answers in their mailboxes come first.
void Core::tell_lost(const PeerName& peer, std::uint64_t epoch, const core::Error& cause) const {
  for (const auto& role : directory.locals())
    caf::anon_send(role.handle, Lost{peer, epoch, cause});
}

void Core::lose(const Binding& gone, const core::Error& cause) const {
  tell_lost(gone.hello.name, gone.hello.epoch, cause);
  if (hooks.lost) hooks.lost(gone.hello.name, gone.hello.epoch, cause);
}

}  // namespace troupe::cluster::exchange
