// Answers tests/oracle/tensor_core_test.py. The word after the program's name is "ampere" or
// "hopper". Takes chains from standard input and writes the bits of each, as they come: 4 bytes for
// the accumulator, 32 for 16 numbers of A, 32 for those of B, in native order; and 4 bytes back.
#include "kernels/tensor_core.hpp"

#include <cstdio>
#include <cstring>
#include <string_view>

namespace {

using namespace troupe::kernels;

TensorFactors factors(const unsigned char* bytes) {
  std::array<std::uint16_t, kTensorDepth> numbers;
  std::memcpy(numbers.data(), bytes, sizeof numbers);
  return TensorFactors(numbers);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name != "ampere" && name != "hopper") return 2;
  const TensorCore& core = name == "ampere" ? kAmpereTensorCore : kHopperTensorCore;
  unsigned char chain[68];
  while (std::fread(chain, sizeof chain, 1, stdin) == 1) {
    std::uint32_t c = 0;
    std::memcpy(&c, chain, sizeof c);
    c = tensor_core_sum(core, c, factors(chain + 4), factors(chain + 36));
    std::fwrite(&c, sizeof c, 1, stdout);
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}
