// The CRC against its definition bit by bit, around the edges of lanes and blocks, and with a copy.
#include "runtime/core/crc32c.hpp"

#include "runtime/core/rng.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace troupe::core {
namespace {

std::uint32_t by_bits(const std::string& bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0x82F63B78u : 0u);
  }
  return ~crc;
}

std::string random_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  Rng rng(3, size);
  for (char& byte : bytes)
    byte = static_cast<char>(rng.next_below(256));
  return bytes;
}

constexpr std::size_t kSizes[] = {0,    1,     7,     8,     63,    767,   768,   769,   1536,
                                  4096, 12287, 12288, 12289, 24575, 24576, 36864, 50001, 100000};

TEST(Crc32c, IsTheDefinitionAtAnySizeAndPlace) {
  EXPECT_EQ(text_crc32c("123456789"), 0xE3069283u);            // the check value of the polynomial
  EXPECT_EQ(text_crc32c(std::string(32, '\0')), 0x8A9136AAu);  // RFC 3720 B.4
  EXPECT_EQ(text_crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  EXPECT_EQ(text_crc32c("56789", text_crc32c("1234")), 0xE3069283u);
  for (const std::size_t size : kSizes) {
    for (const std::size_t shift : {0u, 1u, 5u}) {
      const std::string bytes = random_bytes(size + shift);
      EXPECT_EQ(crc32c(bytes.data() + shift, size), by_bits(bytes.substr(shift))) << size;
    }
  }
}

TEST(Crc32c, GoesOnFromAPartBefore) {
  const std::string bytes = random_bytes(70000);
  for (const std::size_t cut : kSizes) {
    if (cut > bytes.size()) continue;
    const std::uint32_t front = crc32c(bytes.data(), cut);
    EXPECT_EQ(crc32c(bytes.data() + cut, bytes.size() - cut, front), by_bits(bytes));
  }
}

TEST(Crc32c, CopiesWhatItChecks) {
  for (const std::size_t size : kSizes) {
    for (const std::size_t shift : {0u, 16u, 3u}) {
      const std::string bytes = random_bytes(size);
      std::string copy(size + 64, '#');
      EXPECT_EQ(copy_crc32c(copy.data() + shift, bytes.data(), size), by_bits(bytes)) << size;
      EXPECT_EQ(copy.substr(shift, size), bytes);
      EXPECT_EQ(copy.substr(shift + size), std::string(64 - shift, '#'));
      EXPECT_EQ(copy.substr(0, shift), std::string(shift, '#'));
    }
  }
}

}  // namespace
}  // namespace troupe::core
