// SHA-256 against published values.
#include "runtime/store/sha256.hpp"

#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

namespace {

using namespace troupe;

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
