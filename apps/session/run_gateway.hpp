// The one port of a run that other hosts may reach: nodes join and rewards attach here. Makes the
// join token where there is none, and leaves RUN/company.json for commands on this machine. Owned
// by the control plane.
#pragma once

#include "actors/company/admission.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/net/gateway.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace troupe::app {

class RunGateway {
 public:
  // `socket`: of the transport. `admission` outlives the gateway. Errors: kConfig (address,
  // token file, certificates), kResources (the port is taken), naming the key.
  static core::Result<std::unique_ptr<RunGateway>> open(const config::TrainConfig& config,
                                                     const std::filesystem::path& run_folder,
                                                     async::IoThreads& io,
                                                     const std::string& socket,
                                                     actors::Admission& admission,
                                                     std::function<void(const std::string&)> note);
  ~RunGateway();

  // Where the policy serves weights to other hosts, once it does.
  void set_weights_port(std::uint16_t port);
  std::string address() const { return host_ + ":" + std::to_string(gateway_->port()); }
  void stop();

 private:
  RunGateway(std::string host, std::filesystem::path company_file, std::unique_ptr<net::Gateway> gateway);
  std::string host_;
  std::filesystem::path company_file_;
  std::unique_ptr<net::Gateway> gateway_;
};

}  // namespace troupe::app
