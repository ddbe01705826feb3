// Implements `troupe ca init`: makes a certificate authority for one run, and one certificate that
// all nodes of the run share. Plain function; any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::net {

struct RunCaOptions {
  std::filesystem::path folder;    // made if it is missing
  int days = 30;                   // validity of both certificates
  std::vector<std::string> hosts;  // names and addresses of the gateway; empty: any
};

// Writes ca.crt, ca.key, node.crt and node.key (the keys with mode 0600). Errors: kConfig if one of
// them exists or a host is malformed, kResources if writing fails. After an error none of the files
// it wrote is left.
core::Result<void> make_run_ca(const RunCaOptions& options);

}  // namespace troupe::net
