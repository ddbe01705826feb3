#include "runtime/cluster/caf/system.hpp"

#include "runtime/cluster/caf/local_middleman.hpp"
#include "runtime/cluster/caf/parcel.hpp"
#include "runtime/cluster/limits.hpp"
#include "runtime/core/at_exit.hpp"
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
#include <system_error>
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
// The one that starts CAF, then CAF's: two of the scheduler, one of the network, three of actors.
constexpr std::size_t kThreads = 7;

// Starts as many threads as will be needed and ends them again. Throws what the system says when it
// has too few. Their stacks and their shares of the heap are kept for those that follow.
void rehearse_threads() {
  std::promise<void> over;
  const auto waits = over.get_future().share();
  std::vector<std::jthread> threads;
  const core::AtExit end([&over] { over.set_value(); });
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([waits] {
      ::operator delete(::operator new(64));
      waits.wait();
    });
  }
}
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
  rehearse_threads();
  // What CAF has begun it cannot undo: its destructors would wait for ever, or end the program,
  // when the system refuses it a thread after all. On this thread nobody catches the exception, so
  // that no destructor runs and the process ends with the cause (core/shortage.hpp).
  std::thread([this] {
    const Visit visit;
    system = std::make_unique<caf::actor_system>(settings);
    middleman = make_local_middleman(*system);
  }).join();
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
  if (!ended_.valid()) {
    std::packaged_task<void()> end_state([state = state_] {
      pthread_setname_np(pthread_self(), "troupe-caf-end");
      state->end();
    });
    ended_ = end_state.get_future();
    try {
      ender_ = std::thread(std::move(end_state));
    } catch (const std::system_error&) {  // no thread is left: without a time limit, then
      state_->end();
      std::promise<void> over;
      ended_ = over.get_future();
      over.set_value();
    }
  }
  return ended_.wait_until(end) == std::future_status::ready;
}

// A system that never ends must not keep the program from ending. If `destroy` fails, this leaves
// the thread and the state behind; Exchange::close has reported it before.
System::~System() {
  const bool over = destroy(std::chrono::steady_clock::now() + limits::kShutdownDeadline);
  if (over) {
    if (ender_.joinable()) ender_.join();
  } else {
    static_cast<void>(new std::thread(std::move(ender_)));
  }
}

}  // namespace troupe::cluster::exchange
