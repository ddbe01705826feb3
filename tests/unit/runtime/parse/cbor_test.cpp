// CBOR against the examples of RFC 8949, appendix A, and inputs that are damaged or use what is not
// read.
#include "runtime/parse/cbor_items.hpp"
#include "runtime/parse/cbor_writer.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <stdexcept>

namespace troupe::parse {
namespace {

using namespace std::literals;

template <class Write>
std::string written(Write write) {
  std::string out;
  CborWriter writer(out);
  write(writer);
  return out;
}

TEST(CborWriter, NumbersOfTheRfc) {
  const std::pair<std::uint64_t, std::string> examples[] = {
      {0, "\x00"s},
      {23, "\x17"s},
      {24, "\x18\x18"s},
      {100, "\x18\x64"s},
      {1000, "\x19\x03\xe8"s},
      {1'000'000, "\x1a\x00\x0f\x42\x40"s},
      {1'000'000'000'000, "\x1b\x00\x00\x00\xe8\xd4\xa5\x10\x00"s},
      {std::numeric_limits<std::uint64_t>::max(), "\x1b\xff\xff\xff\xff\xff\xff\xff\xff"s}};
  for (const auto& [value, bytes] : examples) {
    EXPECT_EQ(written([&](CborWriter& out) { out.number(value); }), bytes) << value;
    const auto read = CborItems::read(bytes);
    ASSERT_TRUE(read) << value;
    EXPECT_EQ(read->root().number(), value);
  }
}

TEST(CborWriter, OtherItemsOfTheRfc) {
  EXPECT_EQ(written([](CborWriter& out) { out.real(1.1); }),
            "\xfb\x3f\xf1\x99\x99\x99\x99\x99\x9a"s);
  EXPECT_EQ(written([](CborWriter& out) { out.boolean(false); }), "\xf4"s);
  EXPECT_EQ(written([](CborWriter& out) { out.boolean(true); }), "\xf5"s);
  EXPECT_EQ(written([](CborWriter& out) { out.null(); }), "\xf6"s);
  EXPECT_EQ(written([](CborWriter& out) { out.text(""); }), "\x60"s);
  EXPECT_EQ(written([](CborWriter& out) { out.text("IETF"); }), "\x64\x49\x45\x54\x46"s);
  EXPECT_EQ(
      written([](CborWriter& out) {
        const std::array<std::byte, 4> four{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
        out.bytes(4);
        out.append(std::span(four).first(1));
        out.append(std::span(four).subspan(1));
      }),
      "\x44\x01\x02\x03\x04"s);
  EXPECT_EQ(written([](CborWriter& out) {
              out.map(2);
              out.text("a");
              out.number(1);
              out.text("b");
              out.list(2);
              out.number(2);
              out.number(3);
            }),
            "\xa2\x61\x61\x01\x61\x62\x82\x02\x03"s);
}

TEST(CborItems, ReadsInPlace) {
  // {"a": 1, "b": [2, 3], "c": [], "d": {"e": h'0102'}, "f": [null, true, 1.5, 1.0e+300]}; 1.5 in
  // two bytes
  const std::string input =
      "\xa5\x61\x61\x01\x61\x62\x82\x02\x03\x61\x63\x80\x61\x64\xa1\x61\x65\x42\x01\x02"
      "\x61\x66\x84\xf6\xf5\xf9\x3e\x00\xfb\x7e\x37\xe4\x3c\x88\x00\x75\x9c"s;
  const auto read = CborItems::read(input);
  ASSERT_TRUE(read) << read.error().message;
  const CborItem root = read->root();
  EXPECT_EQ(root.at("a").number(), 1u);
  const auto b = root.at("b").items();
  ASSERT_EQ(b.size(), 2u);
  EXPECT_EQ(b[1].number(), 3u);
  EXPECT_TRUE(root.at("c").items().empty());
  const auto bytes = root.at("d").at("e").bytes();
  EXPECT_EQ(reinterpret_cast<const char*>(bytes.data()), input.data() + 18);
  EXPECT_EQ(bytes.size(), 2u);
  const auto f = root.at("f").items();
  ASSERT_EQ(f.size(), 4u);
  EXPECT_TRUE(f[0].is_null());
  EXPECT_TRUE(f[1].boolean());
  EXPECT_EQ(f[2].real(), 1.5);
  EXPECT_EQ(f[3].real(), 1e300);
}

TEST(CborItems, WhatAnItemIsNotThrows) {
  const std::string input = "\xa1\x61\x61\x01"s;
  const auto read = CborItems::read(input);
  ASSERT_TRUE(read);
  EXPECT_THROW(read->root().at("b"), std::out_of_range);
  EXPECT_THROW(read->root().number(), std::out_of_range);
  EXPECT_THROW(read->root().at("a").text(), std::out_of_range);
  EXPECT_THROW(read->root().at("a").at("a"), std::out_of_range);
  EXPECT_FALSE(read->root().is_null());
}

TEST(CborItems, RefusesWhatIsDamagedOrNotRead) {
  const std::string good = "\xa2\x61\x61\x01\x61\x62\x82\x02\x03"s;
  for (std::size_t cut = 0; cut < good.size(); ++cut)
    EXPECT_FALSE(CborItems::read(good.substr(0, cut))) << cut;
  EXPECT_FALSE(CborItems::read(good + "\x01"));       // more than one item
  EXPECT_FALSE(CborItems::read("\x20"));              // -1
  EXPECT_FALSE(CborItems::read("\xc0\x61\x61"));      // a tag
  EXPECT_FALSE(CborItems::read("\xf7"));              // undefined
  EXPECT_FALSE(CborItems::read("\x9f\x01\xff"));      // a list without a length
  EXPECT_FALSE(CborItems::read("\xbf\xff"));          // a map without a length
  EXPECT_FALSE(CborItems::read("\x7f\x61\x61\xff"));  // a text in parts
  EXPECT_FALSE(CborItems::read("\x1c"));              // a reserved length
  EXPECT_FALSE(CborItems::read("\xff"));              // a break without a beginning
  EXPECT_FALSE(CborItems::read("\x9b\xff\xff\xff\xff\xff\xff\xff\xff"s));  // 2^64 - 1 items
  EXPECT_FALSE(CborItems::read("\xbb\x80\x00\x00\x00\x00\x00\x00\x00"s));  // 2^63 pairs
  EXPECT_FALSE(CborItems::read("\x7b\xff\xff\xff\xff\xff\xff\xff\xff"s));  // a text of 2^64 - 1
  EXPECT_EQ(CborItems::read("\x82\x01\x20").error().message, "not CBOR at byte 3");
}

}  // namespace
}  // namespace troupe::parse
