// Encodes messages into frames and decodes them. This file has the layouts of messages whose shape
// differs from the schema's; runtime/wire/layout.hpp derives all others from generated field lists.
#include "actors/protocol/frames.hpp"
#include "actors/protocol/messages_calls.hpp"
#include "actors/protocol/messages_critic.hpp"
#include "actors/protocol/messages_node.hpp"
#include "actors/protocol/messages_rewards.hpp"
#include "actors/protocol/messages_rows.hpp"
#include "runtime/wire/envelope.hpp"
#include "runtime/wire/layout.hpp"

#include <cmath>

namespace troupe::experience {

// For layout.hpp: facts that were not asked for are absent.
inline const TokenFacts* present(const TokenFacts& facts) {
  return facts.empty() ? nullptr : &facts;
}

}  // namespace troupe::experience

namespace troupe::wire {

// Version runs travel as their bytes in memory: (version, count) pairs of uint64.
template <>
struct Layout<capnp::Data, experience::VersionRuns> {
  static capnp::Data::Reader bytes(const experience::VersionRuns& versions) {
    const auto bytes = std::as_bytes(versions.runs());
    return {reinterpret_cast<const capnp::byte*>(bytes.data()), bytes.size()};
  }
  static core::Result<void> read(capnp::Data::Reader in,
                                 experience::VersionRuns& versions,
                                 const char* field) {
    std::vector<std::uint64_t> numbers;
    TROUPE_TRY(take(in, numbers, field));
    for (std::size_t i = 0; i + 1 < numbers.size(); i += 2)
      versions.add(numbers[i], numbers[i + 1]);
    return {};
  }
};

template <>
struct Layout<schema::Number, double> {
  static void write(double value, schema::Number::Builder out) { out.setValue(value); }
  static core::Result<void> read(schema::Number::Reader in, double& value) {
    value = in.getValue();
    return {};
  }
};

// Each sample has a value or the cause why it is missing. A value that is not finite is missing.
template <>
struct Layout<schema::Scores, actors::Scores> {
  static void write(const actors::Scores& scores, schema::Scores::Builder out) {
    auto list = out.initValues(static_cast<unsigned>(scores.values.size()));
    for (unsigned i = 0; i < list.size(); ++i) {
      if (scores.values[i]) {
        list[i].setValue(*scores.values[i]);
      } else {
        list[i].setMissing(i < scores.causes.size() ? scores.causes[i] : "");
      }
      if (i < scores.extras.size()) list[i].setExtra(scores.extras[i]);
      if (i < scores.steps.size()) {
        auto steps = list[i].initSteps(static_cast<unsigned>(scores.steps[i].size()));
        for (unsigned k = 0; k < steps.size(); ++k)
          put_struct(scores.steps[i][k], steps[k]);
      }
    }
    if (!scores.modules.empty()) out.setModules(scores.modules);
  }
  static core::Result<void> read(schema::Scores::Reader in, actors::Scores& scores) {
    for (const auto value : in.getValues()) {
      auto& score = scores.values.emplace_back();
      std::string& cause = scores.causes.emplace_back();
      if (value.isMissing()) {
        TROUPE_TRY(take(value.getMissing(), cause, "missing"));
      } else if (value.isValue() && std::isfinite(value.getValue())) {
        score = value.getValue();
      } else {
        cause = "the score is not a finite number";
      }
      TROUPE_TRY(take(value.getExtra(), scores.extras.emplace_back(), "extra"));
      auto& steps = scores.steps.emplace_back();
      for (const auto step : value.getSteps())
        TROUPE_TRY(take_struct(true, step, steps.emplace_back()));
    }
    return take(in.getModules(), scores.modules, "modules");
  }
};

template <>
struct Layout<schema::AwaitPublished, actors::AwaitPublished> {
  static void write(const actors::AwaitPublished& message, schema::AwaitPublished::Builder out) {
    out.setHolds(message.held.has_value());
    out.setThan(message.held.value_or(0));
  }
  static core::Result<void> read(schema::AwaitPublished::Reader in,
                                 actors::AwaitPublished& message) {
    if (in.getHolds()) message.held = in.getThan();
    return {};
  }
};

}  // namespace troupe::wire

namespace troupe::actors {
namespace {

// Access to the union arm of an envelope that carries this message.
template <class Message>
struct Arm;

#define MESSAGE(Name, arm)                                                                 \
  template <>                                                                              \
  struct Arm<Name> {                                                                       \
    static bool is(schema::Envelope::Reader envelope) { return envelope.is##Name(); }      \
    static auto get(schema::Envelope::Reader envelope) { return envelope.get##Name(); }    \
    static auto init(schema::Envelope::Builder envelope) { return envelope.init##Name(); } \
  };
#include "schema/messages.inc"
#undef MESSAGE

template <class Message>
core::Result<Message> read_body(schema::Envelope::Reader envelope) {
  if (!Arm<Message>::is(envelope)) {
    return core::fail(core::ErrorCode::kUnsupported, "the answer is of an unexpected kind");
  }
  Message message;
  TROUPE_TRY(wire::take_struct(true, Arm<Message>::get(envelope), message));
  return message;
}

}  // namespace

template <class Message>
core::Result<wire::Frame> to_frame(const wire::Header& header, const Message& message) {
  try {
    wire::Outgoing out(header);
    wire::put_struct(message, Arm<Message>::init(out.envelope()));
    return out.finish();
  } catch (const kj::Exception& thrown) {
    return wire::translate(thrown);
  }
}

template <class Message>
core::Result<Message> from_frame(wire::Frame frame) {
  TROUPE_TRY_ASSIGN(incoming, wire::Incoming::open(std::move(frame)));
  return incoming.read(read_body<Message>);
}

#define MESSAGE(Name, arm)                                                                      \
  template core::Result<wire::Frame> to_frame(const wire::Header& header, const Name& message); \
  template core::Result<Name> from_frame(wire::Frame frame);
#include "schema/messages.inc"
#undef MESSAGE

}  // namespace troupe::actors
