// `troupe ca init`: makes a certificate authority for one run and one certificate that its nodes
// share. Plain function; any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::net {

struct RunCaOptions {
  std::filesystem::path folder;  // made when it is missing
  int days = 30;
  std::vector<std::string> hosts;  // names and addresses of the gateways; empty: any
};

// Writes ca.crt, ca.key, node.crt and node.key (the keys with mode 0600). Errors: kConfig when one
// of them exists or a host is malformed; kResources when writing fails; nothing is left half done.
core::Result<void> make_run_ca(const RunCaOptions& options);

}  // namespace troupe::net
