#include "runtime/net/own_address.hpp"

#include "runtime/core/texts.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>

namespace troupe::net {
namespace {

struct Network {
  int family = AF_INET;
  std::array<unsigned char, 16> bytes{};
  int bits = 0;
};

std::optional<Network> network_of(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const std::string address = text.substr(0, slash);
  Network network;
  network.family = address.find(':') == std::string::npos ? AF_INET : AF_INET6;
  if (::inet_pton(network.family, address.c_str(), network.bytes.data()) != 1) return std::nullopt;
  network.bits = core::number_of<int>(std::string_view(text).substr(slash + 1)).value_or(-1);
  const int most = network.family == AF_INET ? 32 : 128;
  return network.bits >= 0 && network.bits <= most ? std::optional(network) : std::nullopt;
}

bool holds(const Network& network, const unsigned char* address) {
  const int whole = network.bits / 8, rest = network.bits % 8;
  if (std::memcmp(address, network.bytes.data(), static_cast<std::size_t>(whole)) != 0)
    return false;
  if (rest == 0) return true;
  const int mask = 0xff << (8 - rest);
  return ((address[whole] ^ network.bytes[static_cast<std::size_t>(whole)]) & mask & 0xff) == 0;
}

const unsigned char* bytes_of(const sockaddr* address) {
  if (address->sa_family == AF_INET)
    return reinterpret_cast<const unsigned char*>(
        &reinterpret_cast<const sockaddr_in*>(address)->sin_addr);
  return reinterpret_cast<const unsigned char*>(
      &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

}  // namespace

core::Result<void> check_network(const std::string& network) {
  if (network_of(network)) return {};
  return core::fail(ErrorCode::kConfig, "'" + network + "' is not a network",
                    "give one like 10.0.0.0/8 or fd00::/8");
}

core::Result<std::string> own_address_in(const std::string& network) {
  TROUPE_TRY(check_network(network));
  const Network wanted = *network_of(network);
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0)
    return core::fail(ErrorCode::kResources, "the system does not tell this host's addresses");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> freed(all, &::freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != wanted.family) continue;
    const unsigned char* const bytes = bytes_of(one->ifa_addr);
    if (!holds(wanted, bytes)) continue;
    char text[INET6_ADDRSTRLEN] = "";
    ::inet_ntop(wanted.family, bytes, text, sizeof text);
    return std::string(text);
  }
  return core::fail(ErrorCode::kConfig, "this host has no address in the network " + network);
}

}  // namespace troupe::net
