// Envelopes there and back, and what a reader refuses once it follows pointers.
#include "runtime/wire/envelope.hpp"

#include "runtime/wire/limits.hpp"
#include "tests/unit/runtime/wire/raw_frames.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

namespace troupe::wire {
namespace {

using core::ErrorCode;
using core::Result;
using testing::some_header;
using testing::struct_pointer;
using testing::Words;

Result<Incoming> open_words(Words words) {
  auto frame = Frame::from_words(std::move(words));
  if (!frame) return frame.failure();
  return Incoming::open(*frame);
}

TEST(Envelope, HeaderComesBackAsItWas) {
  Header header = some_header();
  header.reply = true;
  const auto read = read_header(ack_frame(header));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->run, header.run);
  EXPECT_EQ(read->epoch, header.epoch);
  EXPECT_EQ(read->request, header.request);
  EXPECT_EQ(read->budget_ms, header.budget_ms);
  EXPECT_EQ(read->sender, header.sender);
  EXPECT_TRUE(read->reply);
}

TEST(Envelope, FrameIsAlignedAndNamesItsKind) {
  const Frame frame = testing::score_request(2);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(frame.words().data()) % 8, 0u);
  EXPECT_EQ(frame_kind(frame), "score");
  EXPECT_EQ(frame_kind(ack_frame(some_header())), "ack");
}

TEST(Envelope, FloatsKeepTheirBits) {
  Outgoing outgoing(some_header());
  auto values = outgoing.envelope().initScores().initValues(4);
  const double wanted[] = {std::numeric_limits<double>::infinity(), -0.0, 1e-310, 0.1};
  for (unsigned i = 0; i < 4; ++i)
    values[i].setValue(wanted[i]);
  auto incoming = Incoming::open(outgoing.finish().value());
  auto same = incoming->read([&](schema::Envelope::Reader envelope) -> Result<bool> {
    bool equal = true;
    for (unsigned i = 0; i < 4; ++i) {
      const double got = envelope.getScores().getValues()[i].getValue();
      equal = equal && std::memcmp(&got, &wanted[i], sizeof got) == 0;
    }
    return equal;
  });
  EXPECT_TRUE(same.value());
}

TEST(Envelope, AMessageIsBounded) {
  Outgoing outgoing(some_header());
  outgoing.envelope().initPong().setState(std::string(limits::kMessage_bytes_max, 'x'));
  const auto frame = outgoing.finish();
  ASSERT_FALSE(frame);
  EXPECT_EQ(frame.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(frame.error().message.find("'pong'"), std::string::npos);
}

TEST(Envelope, AMessageOfManySegmentsPasses) {
  Outgoing outgoing(some_header());
  auto items = outgoing.envelope().initScore().initGroup().initSamples(3000);
  for (unsigned i = 0; i < items.size(); ++i)
    items[i].setResponse(std::string(200, 'x'));
  const auto frame = outgoing.finish();
  ASSERT_TRUE(frame);
  auto incoming = Incoming::open(*frame);
  auto total = incoming->read([](schema::Envelope::Reader envelope) -> Result<std::size_t> {
    std::size_t bytes = 0;
    for (const auto item : envelope.getScore().getGroup().getSamples())
      bytes += item.getResponse().size();
    return bytes;
  });
  EXPECT_EQ(total.value(), 600'000u);
}

TEST(Envelope, EveryErrorCodeTravels) {
  for (int code = 0; code < core::kErrorCodes; ++code) {
    const core::Error error{static_cast<ErrorCode>(code), "why"};
    const auto read = read_failure(failure_frame(some_header(), error));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->code, error.code);
    EXPECT_EQ(core::error_name(read->code), core::error_name(error.code));
    EXPECT_EQ(read->message, "why");
  }
  EXPECT_FALSE(read_failure(ack_frame(some_header())).has_value());
}

TEST(Envelope, AdviceTravelsAsAFieldOfTheError) {
  const auto told = core::advised(ErrorCode::kConfig, "\"a; b\" is no key", "did you mean c?");
  const auto read = read_failure(failure_frame(some_header(), told));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->what(), "\"a; b\" is no key");
  EXPECT_EQ(read->advice(), "did you mean c?");
}

TEST(Envelope, ALongErrorTextIsCutBetweenCharacters) {
  std::string text = "a";
  for (int i = 0; i < 4000; ++i)
    text += "\u00e9";
  const auto read = read_failure(failure_frame(some_header(), {ErrorCode::kData, text}));
  EXPECT_EQ(read->message.size(), 4095u);
  EXPECT_EQ(text.compare(0, read->message.size(), read->message), 0);
}

TEST(Envelope, AnotherProtocolGenerationIsUnsupported) {
  Words words = testing::words_of(ack_frame(some_header()));
  // The header is the first struct after the root; its first word holds `protocol`.
  const auto place =
      std::find(words.begin(), words.end(), std::uint64_t{kProtocol} | 1500ull << 32);
  ASSERT_NE(place, words.end());
  *place = 99 | 1500ull << 32;
  const auto incoming = open_words(words);
  ASSERT_FALSE(incoming);
  EXPECT_EQ(incoming.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(incoming.error().message.find("protocol 99"), std::string::npos);
}

TEST(Envelope, AnEmptyRootIsUnsupportedNotACrash) {
  EXPECT_FALSE(open_words(testing::framed(Words(4))));
}

TEST(Envelope, PointersOutOfTheFrameAreRefused) {
  for (const std::int64_t offset : {1, 1000, 0x1FFFFFFF, -5, -0x20000000}) {
    const auto incoming = open_words(testing::framed({struct_pointer(offset, 1, 1), 0, 0}));
    ASSERT_FALSE(incoming) << offset;
  }
}

TEST(Envelope, APointerOfAnotherTypeIsRefused) {
  Words words = testing::words_of(ack_frame(some_header()));
  words[1] |= 1;  // the root says it is a list
  const auto incoming = open_words(words);
  ASSERT_FALSE(incoming);
  EXPECT_EQ(incoming.error().code, ErrorCode::kData);
}

TEST(Envelope, DeepNestingIsRefused) {
  // An honest envelope in front; its unused body pointer leads into a chain of 100 structs.
  const Frame honest = ack_frame(some_header());
  Words words = testing::words_of(honest);
  words[0] += std::uint64_t{100} << 32;
  auto incoming = Incoming::open(honest);
  std::size_t body = 0;  // the body pointer of the root, found by its being an empty struct's
  for (std::size_t i = 2; i < words.size(); ++i) {
    if ((words[i] & 0xFFFFFFFF00000003u) == 0 && words[i] != 0) body = i;
  }
  ASSERT_NE(body, 0u);
  words[body] = struct_pointer(static_cast<std::int64_t>(words.size() - body - 1), 0, 1);
  for (int i = 0; i < 100; ++i)
    words.push_back(struct_pointer(0, 0, i < 99 ? 1 : 0));
  auto deep = open_words(words);
  ASSERT_TRUE(deep) << deep.error().message;
  const auto walked = deep->read([](schema::Envelope::Reader envelope) -> Result<std::uint64_t> {
    return envelope.totalSize().wordCount;
  });
  ASSERT_FALSE(walked);
  EXPECT_EQ(walked.error().code, ErrorCode::kData);
  EXPECT_NE(walked.error().message.find("nest"), std::string::npos) << walked.error().message;
}

std::size_t first_text_pointer(const Words& words, unsigned text_bytes) {
  const std::uint64_t upper = (std::uint64_t{text_bytes} + 1) << 3 | 2;  // a list of bytes
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] >> 32 == upper && (words[i] & 3) == 1) return i;
  }
  return 0;
}

TEST(Envelope, PointingAtOnePartOverAndOverIsRefused) {
  Outgoing outgoing(some_header());
  auto metrics = outgoing.envelope().initTrained().initMetrics(200);
  metrics[0].setName(std::string(4000, 'x'));
  Words words = testing::words_of(outgoing.finish().value());
  const std::size_t first = first_text_pointer(words, 4000);
  ASSERT_NE(first, 0u);
  const std::size_t target = first + 1 + (words[first] >> 2 & 0x3FFFFFFF);
  for (std::size_t i = 1; i < 200; ++i) {
    const std::size_t at = first + i * 2;  // an element is one data word and one pointer
    words[at] = (words[first] & 0xFFFFFFFF00000003u) | (target - at - 1) << 2;
  }
  auto incoming = open_words(words);
  ASSERT_TRUE(incoming);
  std::size_t read_bytes = 0;
  const auto walked = incoming->read([&](schema::Envelope::Reader envelope) -> Result<bool> {
    for (const auto metric : envelope.getTrained().getMetrics())
      read_bytes += metric.getName().size();
    return true;
  });
  ASSERT_FALSE(walked);
  EXPECT_EQ(walked.error().code, ErrorCode::kData);
  EXPECT_LT(read_bytes, 8 * (4 * words.size() + 1024));
}

TEST(Envelope, AListOfNothingsCannotClaimAHundredMillion) {
  Outgoing outgoing(some_header());
  outgoing.envelope().initTickets().initTickets(1);
  Words words = testing::words_of(outgoing.finish().value());
  std::size_t list = 0;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if ((words[i] & 3) == 1 && (words[i] >> 32 & 7) == 7) list = i;
  }
  ASSERT_NE(list, 0u);
  const std::size_t tag = list + 1 + (words[list] >> 2 & 0x3FFFFFFF);
  words[list] &= 0x7FFFFFFFFu;                   // zero words of content
  words[tag] = std::uint64_t{100'000'000} << 2;  // elements without data or pointers
  auto incoming = open_words(words);
  ASSERT_TRUE(incoming);
  std::size_t seen = 0;
  const auto walked = incoming->read([&](schema::Envelope::Reader envelope) -> Result<bool> {
    for (const auto ticket : envelope.getTickets().getTickets())
      seen += 1 + ticket.getSlot();
    return true;
  });
  EXPECT_FALSE(walked);
  EXPECT_LT(seen, 10'000u);
}

TEST(Envelope, PingPongAndShutdownAreTheHosts) {
  EXPECT_EQ(read_host_request(ping_frame(some_header())), HostRequest::kPing);
  EXPECT_EQ(read_host_request(shutdown_frame(some_header())), HostRequest::kShutdown);
  EXPECT_EQ(read_host_request(testing::score_request(1)), HostRequest::kNone);
  const auto pong = read_pong(pong_frame(reply_header(some_header(), "data/0"), "data/0", "ready"));
  ASSERT_TRUE(pong);
  EXPECT_EQ(pong->role, "data/0");
  EXPECT_EQ(pong->state, "ready");
  EXPECT_FALSE(read_pong(ack_frame(some_header())));
}

TEST(Envelope, AWantOfMemoryIsNoMalformedFrame) {
  using Type = kj::Exception::Type;
  const auto code_of = [](Type type) {
    return translate(kj::Exception(type, __FILE__, __LINE__, kj::heapString("calloc"))).error.code;
  };
  EXPECT_EQ(code_of(Type::OVERLOADED), ErrorCode::kResources);
  EXPECT_EQ(code_of(Type::FAILED), ErrorCode::kData);
}

}  // namespace
}  // namespace troupe::wire
