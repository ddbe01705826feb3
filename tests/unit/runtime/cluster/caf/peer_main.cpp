// A process for the exchange's tests to talk to, kill and freeze.
//
//   exchange_peer PATH EPOCH NAME...    joins these roles and connects as the first; PATH "listen":
//   listens
//
// Prints "ready", "at PATH" or "refused: why". A role answers "never" never, "pid" with its
// process, "cpu" with the microseconds of processor time it has used, "kill" by ending its own
// actor, "call NAME" by calling that role, and all else with an echo. Ends with its standard input.
#include "runtime/async/io_threads.hpp"
#include "runtime/cluster/caf/exchange.hpp"
#include "runtime/wire/envelope.hpp"

#include <boost/asio/co_spawn.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

namespace {

using namespace troupe;
using namespace std::chrono_literals;
using core::Result;
using wire::Frame;

std::string text_of(const Frame& frame) {
  const auto pong = wire::read_pong(frame);
  return pong ? pong->state : "not a text";
}

Result<Frame> text_reply(const Frame& request, const std::string& self, const std::string& text) {
  return wire::pong_frame(wire::reply_header(*wire::read_header(request), self), self, text);
}

std::uint64_t cpu_us() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 +
           static_cast<std::uint64_t>(time.tv_usec);
  };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

// Scores come back as scores: what is in them must survive both ways.
Result<Frame> mirror_scores(const Frame& request, const std::string& self) {
  wire::Outgoing outgoing(wire::reply_header(*wire::read_header(request), self));
  auto incoming = wire::Incoming::open(request);
  auto copied = incoming->read([&](schema::Envelope::Reader envelope) -> Result<bool> {
    outgoing.envelope().setScores(envelope.getScores());
    return true;
  });
  if (!copied) return copied.failure();
  return outgoing.finish();
}

async::task<Result<Frame>> serve(cluster::Exchange* exchange,
                                 std::shared_ptr<cluster::Endpoint> self,
                                 Frame request) {
  const std::string name = self->identity().self;
  if (wire::frame_kind(request) == "scores") co_return mirror_scores(request, name);
  const std::string text = text_of(request);
  if (text == "never") {
    auto event = std::make_shared<async::Event>();
    co_await async::Event::wait(event);
  }
  if (text == "pid") co_return text_reply(request, name, std::to_string(::getpid()));
  if (text == "cpu") co_return text_reply(request, name, std::to_string(cpu_us()));
  if (text == "kill") exchange->kill_actor(name);
  if (text.rfind("call ", 0) == 0) {
    const auto deadline = async::Deadline::after(self->timers(), 60s);
    const auto header = self->new_request(deadline);
    auto question = wire::pong_frame(header, name, "from " + name);
    auto answer = co_await self->call(text.substr(5), std::move(question), deadline);
    if (!answer) co_return answer.failure();
    co_return text_reply(request, name, text_of(*answer));
  }
  co_return text_reply(request, name, text);
}

async::task<void> stop(std::shared_ptr<cluster::Endpoint> role) {
  co_await role->stop();
}

int play(const std::string& path, std::uint64_t epoch, const std::vector<std::string>& names) {
  async::SteadyTimers timers;
  async::IoThreads threads(1);
  cluster::Exchange::Hooks hooks;
  hooks.admit = [](const wire::Hello&, const std::string&) { return Result<void>(); };
  auto exchange = std::move(cluster::Exchange::create(hooks, timers)).value();
  std::vector<std::shared_ptr<cluster::Endpoint>> roles;
  for (const auto& name : names) {
    auto joined = exchange->join({name, core::RunId{42}, epoch}, threads.make_strand());
    if (!joined) return 1;
    const std::weak_ptr<cluster::Endpoint> self = *joined;
    (*joined)->serve([&exchange, self](Frame request) {
      return serve(exchange.get(), self.lock(), std::move(request));
    });
    roles.push_back(*joined);
  }
  if (path == "listen") {
    std::cout << "at " << *exchange->listen() << std::endl;
  } else {
    const auto connected =
        exchange->connect(path, {names[0], core::RunId{42}, epoch, "the pass"}, 60s);
    if (connected) {
      std::cout << "ready" << std::endl;
    } else {
      std::cout << "refused: " << connected.error().message << std::endl;
    }
  }
  for (std::string line; std::getline(std::cin, line);) {
  }
  for (const auto& role : roles)
    threads.run(stop(role));
  const auto closed = exchange->close(60s);
  if (!closed) std::cout << closed.error().message << std::endl;
  roles.clear();
  exchange.reset();
  threads.join();
  return closed ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 64;
  return play(argv[1], std::stoull(argv[2]), {argv + 3, argv + argc});
}
