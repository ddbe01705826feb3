// How fast a tunnel and a gateway carry bytes, beside a raw loopback socket in the same run. Prints
// one JSON object a line for each of `--rounds` and the median; not a test. usage: tunnel_perf
// [MiB] [rounds]
#include "runtime/net/gateway.hpp"
#include "runtime/net/gateway_auth.hpp"
#include "runtime/net/tunnel.hpp"
#include "tests/unit/runtime/net/net_support.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace {

using namespace troupe;
using net::test::LocalServer;
using net::test::Socket;

// Swallows everything, then says so.
void sink(Socket socket) {
  static thread_local char buffer[1 << 18];
  while (::recv(socket.fd(), buffer, sizeof buffer, 0) > 0)
    continue;
  socket.send("!");
}

// `place`: a loopback port or a Unix socket.
template <class Place>
double gb_per_s(const Place& place, std::size_t mebibytes) {
  const std::string chunk(1 << 20, 'x');
  const Socket socket = Socket::to(place);
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < mebibytes; ++i) {
    if (!socket.send(chunk)) std::abort();
  }
  socket.end();
  if (socket.receive(1) != "!") std::abort();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return static_cast<double>(mebibytes) * 1048576e-9 / seconds.count();
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t mebibytes = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 512;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  LocalServer server(sink);
  async::IoThreads io(2);
  net::GatewayAuth auth;
  auth.token = *net::make_token();
  auto gateway = net::Gateway::open("127.0.0.1", 0, auth, {{"sink", server.port}}, {});
  if (!gateway) return 1;
  auto tunnel =
      net::Tunnel::open(io, "127.0.0.1", (*gateway)->port(), auth, "sink", std::chrono::seconds(5));
  if (!tunnel) return 1;
  std::vector<double> shares;
  for (int i = 0; i < rounds; ++i) {
    const double raw = gb_per_s(server.port, mebibytes);
    const double carried = gb_per_s((*tunnel)->path(), mebibytes);
    shares.push_back(carried / raw);
    std::printf("{\"raw_gb_per_s\": %.3f, \"tunnel_gb_per_s\": %.3f, \"share\": %.3f}\n", raw,
                carried, carried / raw);
  }
  std::sort(shares.begin(), shares.end());
  std::printf("{\"median_share\": %.3f}\n", shares[shares.size() / 2]);
  return 0;
}
