#include "runtime/collective/rank_listener.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace troupe::collective {
namespace {

constexpr int kWait_ms = 100;  // until `given_up` is looked at again

std::string origin_of(int socket, bool local) {
  if (local) return "a process of this host";
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  char host[NI_MAXHOST] = "?";
  auto* const address = reinterpret_cast<sockaddr*>(&peer);
  if (::getpeername(socket, address, &size) == 0) {
    ::getnameinfo(address, size, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  }
  return host;
}

}  // namespace

core::Result<RankListener> RankListener::open(const RankOptions& options) {
  RankListener listener(options);
  listener.address_.host_id = options.host_id;
  if (options.rank == options.size - 1) return listener;  // no rank dials the last one
  TROUPE_TRY_ASSIGN(folder, net::SocketFolder::make());
  listener.address_.socket = folder.socket("rank");
  listener.folder_.emplace(std::move(folder));
  TROUPE_TRY_SET(listener.unix_, net::listen_unix(listener.address_.socket));
  if (options.tcp_host.empty()) return listener;
  listener.address_.tcp_host = options.tcp_host;
  TROUPE_TRY_SET(listener.tcp_, net::listen_tcp(options.tcp_host, listener.address_.tcp_port));
  return listener;
}

void RankListener::wait(const std::vector<int>& watched) {
  std::vector<pollfd> entries = {{unix_.get(), POLLIN, 0}, {tcp_.get(), POLLIN, 0}};
  for (const Stranger& stranger : strangers_)
    entries.push_back({stranger.socket.get(), POLLIN, 0});
  for (const int socket : watched)
    entries.push_back({socket, POLLRDHUP, 0});
  ::poll(entries.data(), entries.size(), kWait_ms);
  if (entries[0].revents != 0) accept_from(unix_, true);
  if (entries[1].revents != 0) accept_from(tcp_, false);
}

void RankListener::accept_from(const net::OwnedFd& listener, bool local) {
  net::OwnedFd socket = net::accept_one(listener);
  if (!socket) return;
  Stranger stranger;
  stranger.local = local;
  stranger.from = origin_of(socket.get(), local);
  if (local && !net::same_user(socket.get())) return refuse(stranger, "another user");
  new_nonce().copy(stranger.challenge.nonce, kNonce_chars);
  if (::send(socket.get(), &stranger.challenge, sizeof(Challenge), MSG_NOSIGNAL) !=
      sizeof(Challenge))
    return;
  stranger.socket = std::move(socket);
  if (strangers_.size() >= limits::kRankStrangers_max) strangers_.erase(strangers_.begin());
  strangers_.push_back(std::move(stranger));
}

// Reads more of the hello and judges it when it is whole.
core::Result<RankListener::Heard> RankListener::hear(const std::string& key, Stranger& stranger) {
  char* const into = reinterpret_cast<char*>(&stranger.hello) + stranger.bytes;
  const ssize_t n =
      ::recv(stranger.socket.get(), into, sizeof(Hello) - stranger.bytes, MSG_DONTWAIT);
  if (n < 0 && net::would_block()) return Heard::kMore;
  if (n <= 0) {
    if (stranger.bytes > 0) refuse(stranger, "it closed within its hello");
    return Heard::kGone;
  }
  stranger.bytes += static_cast<std::size_t>(n);
  if (stranger.bytes >= sizeof kRankMagic && stranger.hello.magic != kRankMagic) {
    refuse(stranger, "it does not speak the protocol of ranks");
    return Heard::kGone;
  }
  if (stranger.bytes < sizeof(Hello)) return Heard::kMore;
  TROUPE_TRY_ASSIGN(admitted, judge(key, options_.gang, options_.rank, options_.size,
                                    stranger.challenge, stranger.hello));
  if (admitted == Admitted::kWelcome && stranger.hello.shares_memory != 0 && !stranger.local)
    admitted = Admitted::kWrongRank;
  if (admitted == Admitted::kWelcome) return Heard::kWelcome;
  TROUPE_TRY(answer(key, stranger, admitted));
  return Heard::kGone;
}

core::Result<void> RankListener::answer(const std::string& key,
                                        Stranger& stranger,
                                        Admitted admitted) {
  Verdict verdict;
  verdict.admitted = admitted;
  if (admitted != Admitted::kNotProven) {
    TROUPE_TRY_ASSIGN(proof, listener_proof(key, stranger.challenge, stranger.hello));
    proof.copy(verdict.proof, sizeof verdict.proof);
  }
  if (admitted == Admitted::kNotProven) {
    refuse(stranger, reason_of(admitted));
  } else if (admitted != Admitted::kWelcome) {
    refuse(stranger, words_of(stranger.hello) + ": " + reason_of(admitted));
  }
  // Fits into the buffer of a connection on which nothing is under way.
  (void)!::send(stranger.socket.get(), &verdict, sizeof verdict, MSG_NOSIGNAL);
  return {};
}

void RankListener::refuse(const Stranger& stranger, const std::string& why) {
  if (!options_.log || refusals_.size() >= limits::kRankRefusals_max) return;
  const std::string line = "rank " + std::to_string(options_.rank) + " of " + options_.gang.role +
                           " refuses " + stranger.from + ": " + why;
  if (refusals_.insert(line).second) options_.log(line);
}

}  // namespace troupe::collective
