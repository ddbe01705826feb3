// Writes TensorBoard event files for tests/oracle/test_tensorboard.py: observe_driver FOLDER
// fresh|resumed
#include "runtime/observe/tensorboard_writer.hpp"

#include <cmath>
#include <cstdio>
#include <string>

int main(int argc, char** argv) {
  using namespace troupe;
  if (argc != 3) return 2;
  const bool resumed = std::string(argv[2]) == "resumed";
  std::optional<std::uint64_t> resumed_at;
  if (resumed) resumed_at = 3;
  const double now = resumed ? 1700001000.0 : 1700000000.5;
  auto writer = observe::TensorboardWriter::create(argv[1], now, resumed_at);
  if (!writer) {
    std::fprintf(stderr, "%s\n", writer.error().message.c_str());
    return 1;
  }
  const std::uint64_t first = resumed ? 4 : 0;
  const double offset = resumed ? 100 : 0;
  for (std::uint64_t step = first; step < first + 6; ++step) {
    const double time = now + static_cast<double>(step);
    const double x = static_cast<double>(step);
    if (!writer->write({step, time, {{"reward/mean", x / 7 + offset}, {"kl/ref", std::exp(-x)}}})) {
      return 1;
    }
  }
  return writer->write({300'000, now, {{"policy/loss", std::nan("")}}}) ? 0 : 1;
}
