#include "actors/data/sample_record.hpp"

#include <algorithm>
#include <optional>

namespace troupe::actors::data {
namespace {

using experience::kAlwaysLogged;
using experience::kSomeLogged;
using experience::Trajectory;
using experience::Turn;
using parse::CborItem;
using parse::CborWriter;
using Samples = std::vector<Trajectory>;

// ---- the value of one sample

void put_value(CborWriter& out, std::uint32_t number) {
  out.number(number);
}
void put_value(CborWriter& out, const std::string& text) {
  out.text(text);
}
void put_value(CborWriter& out, experience::FinishReason finish) {
  out.number(static_cast<std::uint64_t>(finish));
}
void put_value(CborWriter& out, const std::optional<double>& number) {
  number ? out.real(*number) : out.null();
}
void put_value(CborWriter& out, const std::vector<experience::StepReward>& steps) {
  write_steps(out, steps);
}
void put_value(CborWriter& out, const std::optional<experience::Shares>& shares) {
  out.list(shares ? 2 : 0);
  if (!shares) return;
  out.number(shares->sample);
  out.number(shares->tokens);
}
void put_value(CborWriter& out, const experience::VersionRuns& versions) {
  out.list(versions.runs().size());
  for (const auto& run : versions.runs()) {
    out.list(2);
    out.number(run.version);
    out.number(run.count);
  }
}
void take_value(const CborItem& in, std::uint32_t& number) {
  number = static_cast<std::uint32_t>(in.number());
}
void take_value(const CborItem& in, std::string& text) {
  text = in.text();
}
void take_value(const CborItem& in, experience::FinishReason& finish) {
  if (in.number() > static_cast<std::uint64_t>(experience::FinishReason::kAborted))
    throw std::out_of_range("an unknown finish reason");
  finish = static_cast<experience::FinishReason>(in.number());
}
void take_value(const CborItem& in, std::optional<double>& number) {
  if (!in.is_null()) number = in.real();
}
void take_value(const CborItem& in, std::vector<experience::StepReward>& steps) {
  steps = steps_of(in);
}
void take_value(const CborItem& in, std::optional<experience::Shares>& shares) {
  if (in.items().empty()) return;
  const auto pair = by_sample(in, 2);
  take_value(pair[0], shares.emplace().sample);
  take_value(pair[1], shares->tokens);
}
void take_value(const CborItem& in, experience::VersionRuns& versions) {
  for (const CborItem& run : in.items()) {
    const auto pair = by_sample(run, 2);
    versions.add(pair[0].number(), pair[1].number());
  }
}

// ---- a field of all samples

template <class Member>
constexpr bool is_per_token = false;
template <>
constexpr bool is_per_token<std::vector<std::int32_t>> = true;
template <>
constexpr bool is_per_token<std::vector<float>> = true;

template <class Member, unsigned uses>
using Field = experience::SampleField<Member, uses>;
template <unsigned uses>
using Facts = experience::SampleField<experience::TokenFacts, uses>;
template <unsigned uses>
using Turns = experience::SampleField<std::vector<Turn>, uses>;

bool any_has(const Samples& samples, const experience::TokenFact& fact) {
  return std::any_of(samples.begin(), samples.end(),
                     [&](const Trajectory& one) { return !(one.facts.*fact.list).empty(); });
}

// How many entries of the record it has, 0 if no sample has it.
template <class Member, unsigned uses>
std::size_t entries_of(const Samples& samples, const Field<Member, uses>& field) {
  const bool there = std::any_of(samples.begin(), samples.end(), [&](const Trajectory& one) {
    return one.*field.member != Member();
  });
  return there ? 1 : 0;
}
template <unsigned uses>
std::size_t entries_of(const Samples& samples, const Turns<uses>&) {
  const bool there = std::any_of(samples.begin(), samples.end(),
                                 [](const Trajectory& one) { return !one.turns.empty(); });
  return there ? 2 : 0;
}
template <unsigned uses>
std::size_t entries_of(const Samples& samples, const Facts<uses>&) {
  std::size_t count = 0;
  for (const experience::TokenFact& fact : experience::kTokenFacts)
    count += any_has(samples, fact) ? 2 : 0;
  return count;
}

std::string counts_of(const experience::TokenFact& fact) {
  return std::string(fact.log_name) + "_counts";
}

template <class Member, unsigned uses>
void write_field(EventRecord& out, const Samples& samples, const Field<Member, uses>& field) {
  if constexpr (is_per_token<Member>) {
    out.column(
        field.log_name, samples, [&](const Trajectory& one) -> auto& { return one.*field.member; });
  } else {
    out.list(field.log_name, samples,
             [&](CborWriter& list, const Trajectory& one) { put_value(list, one.*field.member); });
  }
}
template <unsigned uses>
void write_field(EventRecord& out, const Samples& samples, const Turns<uses>& field) {
  out.list(field.log_name, samples, [](CborWriter& list, const Trajectory& one) {
    list.list(one.turns.size());
    for (const Turn& turn : one.turns) {
      list.list(2);
      list.number(turn.begin);
      list.number(turn.context.size());
    }
  });
  std::vector<Turn> all;  // what is between them: a column
  for (const Trajectory& one : samples)
    all.insert(all.end(), one.turns.begin(), one.turns.end());
  out.column(
      "contexts", all, [](const Turn& turn) -> auto& { return turn.context; });
}
template <unsigned uses>
void write_field(EventRecord& out, const Samples& samples, const Facts<uses>&) {
  for (const experience::TokenFact& fact : experience::kTokenFacts) {
    if (!any_has(samples, fact)) continue;
    out.list(counts_of(fact), samples, [&](CborWriter& list, const Trajectory& one) {
      list.number((one.facts.*fact.list).size());
    });
    out.column(
        fact.log_name,
        samples, [&](const Trajectory& one) -> auto& { return one.facts.*fact.list; });
  }
}

template <class Member, unsigned uses>
void read_field(const CborItem& object, Samples& samples, const Field<Member, uses>& field) {
  if constexpr (is_per_token<Member>) {
    const auto counts = by_sample(object.at("counts"), samples.size());
    Column<typename Member::value_type> column(object.at(field.log_name));
    for (std::size_t i = 0; i < samples.size(); ++i)
      samples[i].*field.member = column.next(counts[i].number());
    column.check_end();
  } else {
    const auto items = by_sample(object.at(field.log_name), samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i)
      take_value(items[i], samples[i].*field.member);
  }
}
template <unsigned uses>
void read_field(const CborItem& object, Samples& samples, const Turns<uses>& field) {
  Column<std::int32_t> contexts(object.at("contexts"));
  const auto items = by_sample(object.at(field.log_name), samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (const CborItem& turn : items[i].items()) {
      const auto pair = by_sample(turn, 2);
      samples[i].turns.push_back(
          {static_cast<std::uint32_t>(pair[0].number()), contexts.next(pair[1].number())});
    }
  }
  contexts.check_end();
}

template <unsigned uses>
void read_field(const CborItem& object, Samples& samples, const Facts<uses>&) {
  for (const experience::TokenFact& fact : experience::kTokenFacts) {
    const auto values = object.find(fact.log_name);
    if (!values) continue;
    Column<float> column(*values);
    const auto counts = by_sample(object.at(counts_of(fact)), samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i)
      samples[i].facts.*fact.list = column.next(counts[i].number());
    column.check_end();
  }
}

}  // namespace

SampleRecord::SampleRecord(const Samples& samples) : samples_(samples), fields_(1) {
  experience::each_sample_field<kAlwaysLogged>([this](const auto&) { ++fields_; });
  experience::each_sample_field<kSomeLogged>(
      [this](const auto& field) { fields_ += entries_of(samples_, field); });
}

void SampleRecord::write_always(EventRecord& out) const {
  out.list("counts", samples_,
           [](CborWriter& list, const Trajectory& one) { list.number(one.tokens.size()); });
  experience::each_sample_field<kAlwaysLogged>(
      [&](const auto& field) { write_field(out, samples_, field); });
}

void SampleRecord::write_some(EventRecord& out) const {
  experience::each_sample_field<kSomeLogged>([&](const auto& field) {
    if (entries_of(samples_, field) > 0) write_field(out, samples_, field);
  });
}

Samples samples_of(const CborItem& object) {
  Samples samples(object.at("counts").items().size());
  experience::each_sample_field<kAlwaysLogged>(
      [&](const auto& field) { read_field(object, samples, field); });
  experience::each_sample_field<kSomeLogged>([&](const auto& field) {
    if (field.log_name.empty() || object.find(field.log_name)) read_field(object, samples, field);
  });
  return samples;
}

}  // namespace troupe::actors::data
