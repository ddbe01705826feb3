// Frames made word by word, and honest ones to spoil.
#pragma once

#include "runtime/wire/envelope.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::wire::testing {

using Words = std::vector<std::uint64_t>;

inline std::span<const std::byte> bytes_of(const Words& words) {
  return std::as_bytes(std::span<const std::uint64_t>(words));
}

inline Header some_header() {
  Header header;
  header.run = core::RunId{7};
  header.epoch = 2;
  header.request = core::RequestId{11};
  header.budget_ms = 1500;
  header.sender = "data/0";
  return header;
}

// One segment with its table in front.
inline Words framed(const Words& segment) {
  Words words{std::uint64_t{segment.size()} << 32};
  words.insert(words.end(), segment.begin(), segment.end());
  return words;
}

// A struct pointer: `offset` words from the end of the pointer to the struct.
inline std::uint64_t struct_pointer(std::int64_t offset,
                                    std::uint64_t data,
                                    std::uint64_t pointers) {
  return (static_cast<std::uint64_t>(offset) << 2 & 0xFFFFFFFFu) | data << 32 | pointers << 48;
}

inline Words words_of(const Frame& frame) {
  return {frame.words().begin(), frame.words().end()};
}

inline Frame score_request(int items) {
  Outgoing outgoing(some_header());
  auto score = outgoing.envelope().initScore().initGroup();
  score.setPrompt("1+1=");
  score.setLabel("2");
  score.setColumns("{\"question\":\"1+1=\"}");
  auto list = score.initSamples(static_cast<unsigned>(items));
  for (unsigned i = 0; i < list.size(); ++i)
    list[i].setResponse(std::to_string(i));
  auto frame = outgoing.finish();
  EXPECT_TRUE(frame.has_value());
  return std::move(frame).value();
}

}  // namespace troupe::wire::testing
