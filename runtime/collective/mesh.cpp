#include "runtime/collective/mesh.hpp"

#include "runtime/collective/rank_listener.hpp"
#include "runtime/collective/stream_pipe.hpp"
#include "runtime/collective/window_pipe.hpp"
#include "runtime/core/secret.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <optional>

namespace troupe::collective {
namespace {

using std::to_string;

constexpr std::chrono::hours kForEver{24 * 365};
constexpr std::chrono::seconds kConnect{2};  // then it is tried again

core::TimePoint in(core::Duration span) {
  return core::steady_clock().now() + span;
}

bool ended(int socket) {
  pollfd entry{socket, POLLRDHUP, 0};
  return ::poll(&entry, 1, 0) > 0;
}

// No delay for small messages, and keep-alive that notices a vanished host while nothing is under
// way. No TCP_USER_TIMEOUT, which would cut a rank that is merely frozen. Unix sockets ignore it.
void set_stream_options(int socket) {
  const auto set = [socket](int level, int name, int value) {
    ::setsockopt(socket, level, name, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

class MeshBuilder {
 public:
  MeshBuilder(const RankOptions& options, const std::atomic<bool>& given_up)
      : options_(options), given_up_(given_up), ways_(static_cast<std::size_t>(options.size)) {}

  core::Result<void> build(Rendezvous& rendezvous) {
    TROUPE_TRY_ASSIGN(listener, RankListener::open(options_));
    TROUPE_TRY_SET(meeting_,
                   rendezvous.meet(options_.rank, options_.size, listener.address(), given_up_));
    for (int to = 0; to < options_.rank; ++to)
      TROUPE_TRY(dial(to));
    return accept(listener);
  }

  std::vector<std::unique_ptr<Peer>> take() {
    std::vector<std::unique_ptr<Peer>> peers;
    for (int rank = 0; rank < options_.size; ++rank) {
      if (rank == options_.rank) continue;
      Way& way = way_to(rank);
      peers.push_back(std::make_unique<Peer>(rank, std::move(way.control), std::move(way.pipe)));
    }
    return peers;
  }

 private:
  struct Way {
    net::OwnedFd control;
    bool shares_memory = false;
    std::unique_ptr<Pipe> pipe;
  };

  Way& way_to(int rank) { return ways_[static_cast<std::size_t>(rank)]; }
  net::Patience patience() const { return {kForEver, &given_up_}; }
  std::string name_of(int rank) const {
    return "rank " + to_string(rank) + " of " + options_.gang.role;
  }

  core::Result<void> share_memory(int rank) {
    TROUPE_TRY_SET(way_to(rank).pipe,
                   WindowPipe::exchange(way_to(rank).control, options_.window_bytes, patience(),
                                        name_of(rank)));
    return {};
  }

  core::Result<void> dial(int to) {
    const RankAddress& there = meeting_.addresses[static_cast<std::size_t>(to)];
    Way& way = way_to(to);
    way.shares_memory = !there.socket.empty() && there.host_id == options_.host_id;
    TROUPE_TRY_SET(way.control, dial_until_heard(to, Channel::kControl));
    if (way.shares_memory) return share_memory(to);
    TROUPE_TRY_ASSIGN(bytes, dial_until_heard(to, Channel::kBytes));
    way.pipe = std::make_unique<StreamPipe>(std::move(bytes));
    return {};
  }

  // A connection that ends before the verdict is made again: the other side closes the oldest of
  // too many strangers. If its process is gone, the next attempt finds no listener.
  core::Result<net::OwnedFd> dial_until_heard(int to, Channel channel) {
    for (;;) {
      TROUPE_TRY_ASSIGN(socket, dial_once(to, channel));
      if (socket) return std::move(*socket);
      if (given_up_.load()) return fail(ErrorCode::kClosed, "given up before all ranks were there");
      ::poll(nullptr, 0, static_cast<int>(limits::kRankLook.count()));
    }
  }

  core::Result<std::optional<net::OwnedFd>> dial_once(int to, Channel channel) {
    using Dialled = std::optional<net::OwnedFd>;
    auto connected = connect(to);
    if (!connected && connected.error().code == ErrorCode::kDeadline) return Dialled();
    if (!connected) return fail(connected.error().within(name_of(to)));
    net::OwnedFd socket = std::move(*connected);
    set_stream_options(socket.get());
    Hello hello = hello_of(options_.gang, options_.rank, to, options_.size, channel);
    hello.shares_memory = way_to(to).shares_memory ? 1 : 0;
    Challenge challenge;
    Verdict verdict;
    const auto greet = [&]() -> core::Result<void> {
      const std::string what = "the greeting of " + name_of(to);
      TROUPE_TRY(receive_all(socket, &challenge, sizeof challenge, patience(), what));
      if (challenge.magic != kRankMagic)
        return fail(ErrorCode::kConfig, what + " is not ours: another program listens there");
      TROUPE_TRY_ASSIGN(proof, dialler_proof(meeting_.key, challenge, hello));
      proof.copy(hello.proof, sizeof hello.proof);
      TROUPE_TRY(send_all(socket, &hello, sizeof hello, patience(), what));
      return receive_all(socket, &verdict, sizeof verdict, patience(), what);
    };
    const auto greeted = greet();
    if (!greeted && greeted.error().code == ErrorCode::kPeerLost) return Dialled();
    TROUPE_TRY(greeted);
    TROUPE_TRY(check(to, verdict, challenge, hello));
    return Dialled(std::move(socket));
  }

  core::Result<net::OwnedFd> connect(int to) {
    const RankAddress& there = meeting_.addresses[static_cast<std::size_t>(to)];
    if (way_to(to).shares_memory) return net::connect_unix(there.socket, in(kConnect));
    if (there.tcp_host.starts_with('/')) return net::connect_unix(there.tcp_host, in(kConnect));
    if (there.tcp_port != 0) return net::connect_tcp(there.tcp_host, there.tcp_port, in(kConnect));
    return fail(ErrorCode::kConfig,
                "it is on another host and can be reached there neither by an address nor through "
                "a gateway");
  }

  core::Result<void> check(int to,
                           const Verdict& verdict,
                           const Challenge& challenge,
                           const Hello& hello) const {
    if (verdict.admitted == Admitted::kNotProven) {
      return fail(ErrorCode::kConfig,
                  name_of(to) + " refuses " + words_of(hello) + ": " + reason_of(verdict.admitted));
    }
    TROUPE_TRY_ASSIGN(wanted, listener_proof(meeting_.key, challenge, hello));
    if (verdict.magic != kRankMagic ||
        !core::same_secret({verdict.proof, sizeof verdict.proof}, wanted)) {
      return fail(ErrorCode::kConfig,
                  "the process at the address of " + name_of(to) + " does not know the gang's key");
    }
    if (verdict.admitted == Admitted::kWelcome) return {};
    return fail(ErrorCode::kConfig,
                name_of(to) + " refuses " + words_of(hello) + ": " + reason_of(verdict.admitted));
  }

  core::Result<void> accept(RankListener& listener) {
    const auto taken = [this](int rank, Channel channel) {
      const Way& way = way_to(rank);
      if (channel == Channel::kControl) return static_cast<bool>(way.control);
      return !way.control || way.shares_memory || way.pipe != nullptr;
    };
    while (!complete()) {
      if (given_up_.load()) return fail(ErrorCode::kClosed, "given up before all ranks were there");
      TROUPE_TRY(all_still_there());
      TROUPE_TRY_ASSIGN(admission, listener.next(meeting_.key, controls(), taken));
      if (!admission) continue;
      Way& way = way_to(admission->rank);
      set_stream_options(admission->socket.get());
      if (admission->channel == Channel::kBytes) {
        way.pipe = std::make_unique<StreamPipe>(std::move(admission->socket));
        continue;
      }
      way.control = std::move(admission->socket);
      way.shares_memory = admission->shares_memory;
      if (way.shares_memory) TROUPE_TRY(share_memory(admission->rank));
    }
    return {};
  }

  bool complete() {
    for (int rank = options_.rank + 1; rank < options_.size; ++rank)
      if (way_to(rank).pipe == nullptr) return false;
    return true;
  }

  std::vector<int> controls() const {
    std::vector<int> sockets;
    for (const Way& way : ways_)
      if (way.control) sockets.push_back(way.control.get());
    return sockets;
  }

  core::Result<void> all_still_there() {
    for (int rank = 0; rank < options_.size; ++rank) {
      if (way_to(rank).control && ended(way_to(rank).control.get()))
        return fail(ErrorCode::kPeerLost, name_of(rank) + " went away while the gang formed");
    }
    return {};
  }

  const RankOptions& options_;
  const std::atomic<bool>& given_up_;
  Meeting meeting_;
  std::vector<Way> ways_;  // by rank
};

}  // namespace

core::Result<std::vector<std::unique_ptr<Peer>>> connect_ranks(const RankOptions& options,
                                                               Rendezvous& rendezvous,
                                                               const std::atomic<bool>& given_up) {
  MeshBuilder builder(options, given_up);
  TROUPE_TRY(builder.build(rendezvous));
  return builder.take();
}

}  // namespace troupe::collective
