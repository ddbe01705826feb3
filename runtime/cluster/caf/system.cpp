#include "runtime/cluster/caf/system.hpp"

#include "runtime/cluster/caf/local_middleman.hpp"
#include "runtime/cluster/caf/parcel.hpp"
#include "runtime/cluster/limits.hpp"
#include "runtime/core/check.hpp"
#include "runtime/wire/header.hpp"

#include <caf/detail/get_root_uuid.hpp>
#include <caf/io/middleman.hpp>
#include <caf/logger.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <pthread.h>
#include <sys/random.h>

#include <string>
#include <utility>
#include <vector>

// CAF makes a node id from the network addresses, the text that this function returns, and the
// process id. In CAF the text is a disk's id, so all three can be equal in two containers of one
// image, which then could not connect. This definition takes the place of the library's and returns
// 256 random bits.
__attribute__((visibility("default"))) std::string caf::detail::get_root_uuid() {
  std::string bits(32, '\0');
  TROUPE_CHECK(::getrandom(bits.data(), bits.size(), 0) == static_cast<ssize_t>(bits.size()),
               "the kernel gives random bytes");
  return bits;
}

namespace troupe::cluster::exchange {

namespace {
// Messages that one actor handles before another gets its turn.
constexpr std::size_t kMessagesInTurn_max = 64;
}  // namespace

Settings::Settings() {
  add_message_type<Parcel>("troupe.frame");
  load<caf::io::middleman>();
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-threads", std::size_t{1});
  set("scheduler.max-throughput", kMessagesInTurn_max);
  set("logger.verbosity", caf::atom("quiet"));
  // Frames are read on the network thread, which saves a hop and keeps their order.
  set("middleman.workers", std::size_t{0});
  set("middleman.app-identifiers",
      std::vector<std::string>{"troupe/" + std::to_string(wire::kProtocol)});
  set("middleman.heartbeat-interval", caf::timespan(limits::kLinkBeatEvery));
  set("middleman.connection-timeout", caf::timespan(limits::kLinkLost_max));
}

Visit::~Visit() {
  caf::logger::set_current_actor_system(nullptr);
}

System::State::State() {
  const Visit visit;
  system = std::make_unique<caf::actor_system>(settings);
  middleman = make_local_middleman(*system);
}

// The middleman has a thread of its own, which must be gone before the system is.
void System::State::end() {
  {
    const Visit visit;
    caf::scoped_actor self(*system, true);
    self->send_exit(middleman, caf::exit_reason::kill);
    self->wait_for(middleman);
  }
  middleman = nullptr;
  system.reset();
}

bool System::destroy(core::TimePoint end) {
  if (!ender_.joinable()) {
    std::packaged_task<void()> end_state([state = state_] {
      pthread_setname_np(pthread_self(), "troupe-caf-end");
      state->end();
    });
    ended_ = end_state.get_future();
    ender_ = std::thread(std::move(end_state));
  }
  return ended_.wait_until(end) == std::future_status::ready;
}

// A system that never ends must not keep the program from ending. If `destroy` fails, this leaves
// the thread and the state behind; Exchange::close has reported it before.
System::~System() {
  const bool over = destroy(std::chrono::steady_clock::now() + limits::kShutdownDeadline);
  if (over) {
    ender_.join();
  } else {
    static_cast<void>(new std::thread(std::move(ender_)));
  }
}

}  // namespace troupe::cluster::exchange
