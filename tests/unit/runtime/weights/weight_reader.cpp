// A receiver in a process of its own, driven by lines on standard input, one answer a line:
//   fetch V    -> fetched W | error ...     holds version W, nothing read yet
//   read       -> reading                   checks one bucket of it
//   pack       -> ok W | error ...          the rest; compares every bit with version W
//   follow V   -> ok W ... ok V             takes whatever is newest until V has come
// Arguments: memory|tcp|device VOCABULARY HOST_ID SOCKET TCP_HOST TCP_PORT KEY. Ends with its
// input. device: as memory, with panels on the device of kernels/cuda.
#include "kernels/cuda/device_team.hpp"
#include "kernels/cuda/library.hpp"
#include "tests/unit/runtime/weights/fixture.hpp"

#include <iostream>

namespace troupe::weights {
namespace {

class Reader {
 public:
  Reader(const model::ModelSpec& spec, WeightLocation location, core::TeamRunner& team)
      : team_(team),
        subscriber_(spec, kernels::PanelDtype::kF32, own_host_id(), team.memory()),
        location_(std::move(location)) {}

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
  const WeightLocation location_;
  std::unique_ptr<WeightIntake> intake_;
  core::Version last_ = 0;
};

}  // namespace
}  // namespace troupe::weights

int main(int count, char** words) {
  if (count != 8) return 2;
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
  troupe::weights::Reader reader(troupe::weights::tiny(std::stol(words[2])), location, *team);
  for (std::string command; std::cin >> command;) {
    troupe::core::Version version = 0;
    if (command == "fetch" && std::cin >> version) std::cout << reader.fetch(version) << std::endl;
    if (command == "read") std::cout << reader.read() << std::endl;
    if (command == "pack") std::cout << reader.pack() << std::endl;
    if (command == "follow" && std::cin >> version) reader.follow(version);
  }
  return 0;
}
