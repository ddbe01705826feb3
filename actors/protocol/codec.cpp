// Messages to frames and back. The messages whose shape differs from the schema's have their layout
// here; all others follow from the lists (layout.hpp).
#include "actors/protocol/frames.hpp"
#include "actors/protocol/messages_critic.hpp"
#include "actors/protocol/messages_node.hpp"
#include "actors/protocol/messages_rewards.hpp"
#include "runtime/wire/envelope.hpp"
#include "runtime/wire/layout.hpp"

#include <cmath>

namespace troupe::wire {

template <>
struct Layout<schema::DeliveredSample, actors::DeliveredSample> {
  static void write(const actors::DeliveredSample& sample, schema::DeliveredSample::Builder out) {
    auto record = out.initRecord();
    record.setTokens(wire_of(sample.tokens));
    record.setBehaviour(wire_of(sample.behaviour));
    record.setKeptMass(wire_of(sample.kept_mass));
    record.setVersions(wire_of(sample.versions));
    record.setFinish(wire_of(sample.finish));
    out.setText(wire_of(sample.text));
  }
  static core::Result<void> read(schema::DeliveredSample::Reader in,
                                 actors::DeliveredSample& sample) {
    const auto record = in.getRecord();
    TROUPE_TRY(take(record.getTokens(), sample.tokens, "tokens"));
    TROUPE_TRY(take(record.getBehaviour(), sample.behaviour, "behaviour"));
    TROUPE_TRY(take(record.getKeptMass(), sample.kept_mass, "keptMass"));
    TROUPE_TRY(take(record.getVersions(), sample.versions, "versions"));
    TROUPE_TRY(take(record.getFinish(), sample.finish, "finish"));
    return take(in.getText(), sample.text, "text");
  }
};

template <>
struct Layout<schema::ExperienceSample, actors::ExperienceSample> {
  static void write(const actors::ExperienceSample& sample, schema::ExperienceSample::Builder out) {
    auto record = out.initRecord();
    record.setTokens(wire_of(sample.tokens));
    record.setBehaviour(wire_of(sample.behaviour));
    record.setVersions(wire_of(sample.versions));
    record.setReference(wire_of(sample.reference));
    record.setFinish(wire_of(sample.finish));
    out.setScore(sample.score);
  }
  static core::Result<void> read(schema::ExperienceSample::Reader in,
                                 actors::ExperienceSample& sample) {
    const auto record = in.getRecord();
    TROUPE_TRY(take(record.getTokens(), sample.tokens, "tokens"));
    TROUPE_TRY(take(record.getBehaviour(), sample.behaviour, "behaviour"));
    TROUPE_TRY(take(record.getVersions(), sample.versions, "versions"));
    TROUPE_TRY(take(record.getReference(), sample.reference, "reference"));
    TROUPE_TRY(take(record.getFinish(), sample.finish, "finish"));
    return take(in.getScore(), sample.score, "score");
  }
};

// A sample has a value or a cause; a value that is no finite number is none.
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
    }
    if (scores.wanted) put_struct(*scores.wanted, out.initWanted());
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
    }
    return take_struct(in.hasWanted(), in.getWanted(), scores.wanted);
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

// The arm of an envelope that carries a message.
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
    return core::fail(core::ErrorCode::kUnsupported, "an answer of another kind than asked for");
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
