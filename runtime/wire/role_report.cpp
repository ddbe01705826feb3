#include "runtime/wire/role_report.hpp"

#include "runtime/core/check.hpp"
#include "runtime/wire/envelope.hpp"
#include "runtime/wire/layout.hpp"
#include "runtime/wire/limits.hpp"

#include <algorithm>

namespace troupe::wire {
namespace {

using core::ErrorCode;

// Texts of a report are names and states; longer ones are cut so that a report always fits a frame.
constexpr std::size_t kText_bytes_max = 256;
constexpr std::size_t kAmounts_max = 256;
// Half of a frame; the rest takes every other field at its longest.
constexpr std::size_t kSpans_bytes_max = limits::kFrame_bytes_max / 2;

// Cut at a byte that begins a character.
void cut(std::string& text) {
  if (text.size() <= kText_bytes_max) return;
  std::size_t end = kText_bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  text.resize(end);
}

void cut(Amounts& amounts) {
  amounts.resize(std::min(amounts.size(), kAmounts_max));
  for (auto& [name, value] : amounts)
    cut(name);
}

// How many of the oldest spans fit: two words, two pointers and two padded texts each.
std::size_t spans_that_fit(const std::vector<Span>& spans) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    bytes += 32 + 2 * 8 + spans[i].state.size() + spans[i].cause.size();
    if (bytes > kSpans_bytes_max) return i;
  }
  return spans.size();
}

// The asker goes on with the spans where this frame ends.
RoleReport cut_to_fit(RoleReport report) {
  for (std::string* text : {&report.name, &report.state, &report.waits_for})
    cut(*text);
  cut(report.idle_s);
  cut(report.amounts);
  for (Span& span : report.spans) {
    cut(span.state);
    cut(span.cause);
  }
  const std::size_t fit = spans_that_fit(report.spans);
  report.next_span -= report.spans.size() - fit;
  report.spans.resize(fit);
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
  put_struct(cut_to_fit(report), outgoing.envelope().initRoleReport());
  auto frame = outgoing.finish();
  TROUPE_CHECK(frame.has_value(), "a cut report fits a frame");
  return std::move(frame).value();
}

core::Result<RoleReport> read_role_report(const Frame& frame) {
  TROUPE_TRY_ASSIGN(incoming, Incoming::open(frame));
  return incoming.read([](schema::Envelope::Reader envelope) -> core::Result<RoleReport> {
    if (!envelope.isRoleReport()) return core::fail(ErrorCode::kData, "not a report of a role");
    RoleReport report;
    TROUPE_TRY(take_struct(true, envelope.getRoleReport(), report));
    return report;
  });
}

}  // namespace troupe::wire
