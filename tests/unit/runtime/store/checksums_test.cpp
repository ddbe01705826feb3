// CRC-32C and SHA-256 against published values.
#include "runtime/store/crc32c.hpp"
#include "runtime/store/sha256.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

namespace {

using namespace troupe;

// The definition, bit by bit, as an oracle for the instruction.
std::uint32_t crc32c_by_bits(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1) ? 0x82F63B78u : 0u);
  }
  return ~crc;
}

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(store::crc32c("123456789"), 0xE3069283u);  // the check value of the polynomial
  EXPECT_EQ(store::crc32c(std::string(32, '\0')), 0x8A9136AAu);  // RFC 3720 B.4
  EXPECT_EQ(store::crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  EXPECT_EQ(store::crc32c(""), 0u);
}

TEST(Crc32c, MatchesTheDefinitionAtEveryLength) {
  std::string text;
  for (int i = 0; i < 70; ++i) {
    EXPECT_EQ(store::crc32c(text), crc32c_by_bits(text)) << i;
    text += static_cast<char>(i * 37 + 11);
  }
}

TEST(Crc32c, GoesOnFromAnEarlierPart) {
  EXPECT_EQ(store::crc32c("56789", store::crc32c("1234")), 0xE3069283u);
}

TEST(Sha256, KnownValues) {  // FIPS 180-4 examples
  EXPECT_EQ(store::sha256_text("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(store::sha256_text(""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256, FileEqualsText) {
  test::TempFolder folder;
  const std::string text(3'000'001, 'x');
  test::put_file(folder / "a", text);
  auto digest = store::sha256_file(folder / "a");
  ASSERT_TRUE(digest);
  EXPECT_EQ(digest->bytes, text.size());
  EXPECT_EQ(digest->sha256, store::sha256_text(text));
  EXPECT_FALSE(store::sha256_file(folder / "none"));
}

}  // namespace
