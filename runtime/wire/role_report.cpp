// Questions to a role's host and its report, to bytes and back.
#include "runtime/wire/role_report.hpp"

#include "runtime/core/check.hpp"
#include "runtime/wire/envelope.hpp"
#include "runtime/wire/limits.hpp"

#include <algorithm>

namespace troupe::wire {
namespace {

using core::ErrorCode;
using Amounts_ = capnp::List<schema::Amount>;

// Texts of a report are names and states; longer ones are cut so that a report always fits a frame.
constexpr std::size_t kText_bytes_max = 256;
constexpr std::size_t kAmounts_max = 256;
// Half of a frame; the rest takes every other field at its longest.
constexpr std::size_t kSpans_bytes_max = limits::kFrame_bytes_max / 2;

std::string text_of(capnp::Text::Reader text) {
  return {text.begin(), text.size()};
}

// Cut at a byte that begins a character.
std::string cut(const std::string& text) {
  if (text.size() <= kText_bytes_max) return text;
  std::size_t end = kText_bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  return text.substr(0, end);
}

unsigned amounts_of(const Amounts& amounts) {
  return static_cast<unsigned>(std::min(amounts.size(), kAmounts_max));
}

void put(Amounts_::Builder out, const Amounts& amounts) {
  for (unsigned i = 0; i < out.size(); ++i) {
    out[i].setName(cut(amounts[i].first));
    out[i].setValue(amounts[i].second);
  }
}

Amounts take(Amounts_::Reader in) {
  Amounts amounts;
  for (const auto amount : in)
    amounts.emplace_back(text_of(amount.getName()), amount.getValue());
  return amounts;
}

// How many of the oldest spans fit: two words, two pointers and two padded texts each.
std::size_t spans_that_fit(const std::vector<Span>& spans) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    bytes += 32 + 2 * 8 + std::min(spans[i].state.size(), kText_bytes_max) +
             std::min(spans[i].cause.size(), kText_bytes_max);
    if (bytes > kSpans_bytes_max) return i;
  }
  return spans.size();
}

void put_spans(schema::RoleReport::Builder out, const std::vector<Span>& spans, std::size_t count) {
  auto list = out.initSpans(static_cast<unsigned>(count));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setState(cut(spans[i].state));
    list[i].setCause(cut(spans[i].cause));
    list[i].setBegin(spans[i].begin);
    list[i].setEnd(spans[i].end);
  }
}

RoleReport take_report(schema::RoleReport::Reader in) {
  RoleReport report;
  report.name = text_of(in.getName());
  report.state = text_of(in.getState());
  report.actor = in.getActor();
  report.epoch = in.getEpoch();
  report.inbox = in.getInbox();
  report.pending = in.getPending();
  report.frames_in = in.getFramesIn();
  report.frames_out = in.getFramesOut();
  report.busy_s = in.getBusySeconds();
  report.paused_s = in.getPausedSeconds();
  report.wall_s = in.getWallSeconds();
  report.idle_s = take(in.getIdle());
  report.amounts = take(in.getAmounts());
  for (const auto span : in.getSpans()) {
    report.spans.push_back(
        {text_of(span.getState()), text_of(span.getCause()), span.getBegin(), span.getEnd()});
  }
  report.next_span = in.getNextSpan();
  report.waits_for = text_of(in.getWaitsFor());
  return report;
}

}  // namespace

Frame query_role_frame(const Header& header, std::uint64_t spans_after) {
  Outgoing outgoing(header);
  outgoing.envelope().initQueryRole().setSpansAfter(spans_after);
  auto frame = outgoing.finish();
  TROUPE_CHECK(frame.has_value(), "a number fits a frame");
  return std::move(frame).value();
}

core::Result<std::uint64_t> read_query_role(const Frame& frame) {
  TROUPE_TRY_ASSIGN(incoming, Incoming::open(frame));
  return incoming.read([](schema::Envelope::Reader envelope) -> core::Result<std::uint64_t> {
    if (!envelope.isQueryRole()) return core::fail(ErrorCode::kData, "not a question about a role");
    return envelope.getQueryRole().getSpansAfter();
  });
}

Frame role_report_frame(const Header& header, const RoleReport& report) {
  Outgoing outgoing(header);
  auto out = outgoing.envelope().initRoleReport();
  out.setName(cut(report.name));
  out.setState(cut(report.state));
  out.setActor(report.actor);
  out.setEpoch(report.epoch);
  out.setInbox(report.inbox);
  out.setPending(report.pending);
  out.setFramesIn(report.frames_in);
  out.setFramesOut(report.frames_out);
  out.setBusySeconds(report.busy_s);
  out.setPausedSeconds(report.paused_s);
  out.setWallSeconds(report.wall_s);
  put(out.initIdle(amounts_of(report.idle_s)), report.idle_s);
  put(out.initAmounts(amounts_of(report.amounts)), report.amounts);
  const std::size_t fit = spans_that_fit(report.spans);
  put_spans(out, report.spans, fit);
  // The asker goes on where this frame ends.
  out.setNextSpan(report.next_span - (report.spans.size() - fit));
  out.setWaitsFor(cut(report.waits_for));
  auto frame = outgoing.finish();
  TROUPE_CHECK(frame.has_value(), "a cut report fits a frame");
  return std::move(frame).value();
}

core::Result<RoleReport> read_role_report(const Frame& frame) {
  TROUPE_TRY_ASSIGN(incoming, Incoming::open(frame));
  return incoming.read([](schema::Envelope::Reader envelope) -> core::Result<RoleReport> {
    if (!envelope.isRoleReport()) return core::fail(ErrorCode::kData, "not a report of a role");
    return take_report(envelope.getRoleReport());
  });
}

}  // namespace troupe::wire
