// A receiver in a process of its own, driven by lines on standard input, one answer a line:
//   fetch V    -> fetched W | error ...     holds version W, nothing read yet
//   read       -> reading                   checks one bucket of it
//   pack       -> ok W | error ...          the rest; compares every bit with version W
//   follow V   -> ok W ... ok V             takes whatever is newest until V has come
//   relay      -> relay N B                 receivers that had weights from it, and the bytes of
//                                           their streams
//   source H P K                            the next fetches ask host H, port P, key K
// Arguments: memory|tcp|device VOCABULARY HOST_ID SOCKET TCP_HOST TCP_PORT KEY OWN_HOST REACH. Ends
// with its input. device: as memory, with panels on the device of kernels/cuda. OWN_HOST: empty:
// that of this process. REACH: the address of its relay, with "@" for the port. Without
// "@" it is that of something between, which needs the port: it says "port P" when it has one.
//
// As `weight_reader source VOCABULARY` it is a publisher:
//   publish V  -> at SOCKET TCP_HOST TCP_PORT KEY
#include "kernels/cuda/device_team.hpp"
#include "kernels/cuda/library.hpp"
#include "tests/unit/runtime/weights/fixture.hpp"

#include <iostream>

namespace troupe::weights {
namespace {

class Reader {
 public:
  Reader(const model::ModelSpec& spec,
         WeightLocation location,
         core::TeamRunner& team,
         const std::string& host,
         const std::string& reach)
      : team_(team),
        subscriber_(spec,
                    kernels::PanelDtype::kF32,
                    host.empty() ? own_host_id() : host,
                    team.memory(),
                    relays(reach)),
        location_(std::move(location)) {}

  static RelayOptions relays(const std::string& reach) {
    RelayOptions options;
    if (reach.empty()) return options;
    options.reach = [reach](std::uint32_t port) {
      const std::size_t at = reach.find('@');
      if (at != std::string::npos) return reach.substr(0, at) + std::to_string(port);
      std::cout << "port " << port << std::endl;
      return reach;
    };
    return options;
  }
  std::string relay() const {
    const ServerCounters counters = subscriber_.relay_counters();
    return "relay " + std::to_string(counters.served) + " " +
           std::to_string(counters.streamed_bytes);
  }
  void ask_of(const std::string& host, std::uint32_t port, const std::string& key) {
    location_.tcp_host = host;
    location_.tcp_port = port;
    location_.key = key;
    last_ = 0;
  }

  std::string fetch(core::Version at_least) {
    auto intake = subscriber_.fetch(at_least, location_, kLong);
    if (!intake) return "error " + intake.error().message;
    intake_ = std::move(intake).value();
    return "fetched " + std::to_string(intake_->version());
  }

  std::string read() {
    const auto done = intake_->advance(team_, core::Duration(0));
    return done ? "reading" : "error " + done.error().message;
  }

  std::string pack() {
    const auto done = intake_->advance(team_, kLong);
    if (!done) return "error " + done.error().message;
    const core::Version version = intake_->version();
    if (!holds_version(*intake_->take(), version)) return "error other bits";
    last_ = version;
    return "ok " + std::to_string(version);
  }

  void follow(core::Version last) {
    while (last_ < last) {
      const std::string fetched = fetch(last_ + 1);
      if (fetched.find("not at") != std::string::npos) continue;
      std::cout << (fetched[0] == 'e' ? fetched : pack()) << std::endl;
    }
  }

 private:
  core::TeamRunner& team_;
  RemoteWeightSubscriber subscriber_;
  WeightLocation location_;
  std::unique_ptr<WeightIntake> intake_;
  core::Version last_ = 0;
};

int publish_all(const model::ModelSpec& spec) {
  Source source(spec);
  core::Version version = 0;
  for (std::string command; std::cin >> command >> version;) {
    const WeightLocation at = source.publish(version);
    std::cout << "at " << at.socket << " " << at.tcp_host << " " << at.tcp_port << " " << at.key
              << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace troupe::weights

int main(int count, char** words) {
  if (count >= 3 && words[1] == std::string("source")) {
    return troupe::weights::publish_all(troupe::weights::tiny(std::stol(words[2])));
  }
  if (count != 10) return 2;
  troupe::weights::WeightLocation location;
  location.host_id = words[3];
  const bool device = words[1] == std::string("device");
  if (device || words[1] == std::string("memory")) location.socket = words[4];
  location.tcp_host = words[5];
  if (words[1] == std::string("tcp"))
    location.tcp_port = static_cast<std::uint32_t>(std::stoul(words[6]));
  location.key = words[7];
  std::unique_ptr<troupe::core::TeamRunner> team = std::make_unique<troupe::core::SerialTeam>();
  if (device) {
    auto opened = troupe::kernels::cuda::open_device(0);
    if (!opened) return 3;
    team = std::make_unique<troupe::kernels::cuda::DeviceTeam>(std::move(*opened));
  }
  troupe::weights::Reader reader(troupe::weights::tiny(std::stol(words[2])), location, *team,
                                 words[8], words[9]);
  for (std::string command; std::cin >> command;) {
    troupe::core::Version version = 0;
    if (command == "fetch" && std::cin >> version) std::cout << reader.fetch(version) << std::endl;
    if (command == "read") std::cout << reader.read() << std::endl;
    if (command == "pack") std::cout << reader.pack() << std::endl;
    if (command == "relay") std::cout << reader.relay() << std::endl;
    std::string host, key;
    std::uint32_t port = 0;
    if (command == "source" && std::cin >> host >> port >> key) reader.ask_of(host, port, key);
    if (command == "follow" && std::cin >> version) reader.follow(version);
  }
  return 0;
}
