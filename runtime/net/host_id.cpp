#include "runtime/net/host_id.hpp"

#include <filesystem>
#include <fstream>
#include <system_error>

namespace troupe::net {

std::string own_host_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  // Processes of another network namespace cannot reach our abstract sockets.
  std::error_code error;
  const auto network = std::filesystem::read_symlink("/proc/self/ns/net", error);
  if (!error) id += "/" + network.string();
  return id;
}

}  // namespace troupe::net
