#include "runtime/wire/role_report.hpp"

#include "runtime/wire/bodies.hpp"
#include "runtime/wire/limits.hpp"

#include <algorithm>

namespace troupe::wire {
namespace {

// The texts of a report are names and states. Longer ones are cut, so that a report always fits a
// frame.
constexpr std::size_t kText_bytes_max = 256;
constexpr std::size_t kAmounts_max = 256;
// Half a frame; the other half has room for all other fields at their longest.
constexpr std::size_t kSpans_bytes_max = limits::kFrame_bytes_max / 2;

struct Question {
  std::uint64_t spans_after = 0;
};

void cut_text(std::string& text) {
  text.resize(cut(text, kText_bytes_max).size());
}

void cut_amounts(Amounts& amounts) {
  amounts.resize(std::min(amounts.size(), kAmounts_max));
  for (auto& [name, value] : amounts)
    cut_text(name);
}

// How many of the oldest spans fit. Each takes two words, two pointers and two padded texts.
std::size_t spans_that_fit(const std::vector<Span>& spans) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    bytes += 32 + 2 * 8 + spans[i].state.size() + spans[i].cause.size();
    if (bytes > kSpans_bytes_max) return i;
  }
  return spans.size();
}

// Cuts a report to fit a frame. The asker's next query gets the spans that were left out.
RoleReport cut_to_fit(RoleReport report) {
  for (std::string* text : {&report.name, &report.state, &report.waits_for})
    cut_text(*text);
  cut_amounts(report.idle_s);
  cut_amounts(report.amounts);
  for (Span& span : report.spans) {
    cut_text(span.state);
    cut_text(span.cause);
  }
  const std::size_t fit = spans_that_fit(report.spans);
  report.next_span -= report.spans.size() - fit;
  report.spans.resize(fit);
  return report;
}

}  // namespace

const double* find_amount(const Amounts& amounts, std::string_view name) {
  const auto found = std::find_if(amounts.begin(), amounts.end(),
                                  [&](const auto& one) { return one.first == name; });
  return found == amounts.end() ? nullptr : &found->second;
}

Frame query_role_frame(const Header& header, std::uint64_t spans_after) {
  return frame_of(header, &EnvelopeBuilder::initQueryRole, Question{spans_after});
}

core::Result<std::uint64_t> read_query_role(const Frame& frame) {
  TROUPE_TRY_ASSIGN(
      question, body_of<Question>(frame, &EnvelopeReader::isQueryRole,
                                  &EnvelopeReader::getQueryRole, "not a question about a role"));
  return question.spans_after;
}

Frame role_report_frame(const Header& header, const RoleReport& report) {
  return frame_of(header, &EnvelopeBuilder::initRoleReport, cut_to_fit(report));
}

core::Result<RoleReport> read_role_report(const Frame& frame) {
  return body_of<RoleReport>(frame, &EnvelopeReader::isRoleReport, &EnvelopeReader::getRoleReport,
                             "not a report of a role");
}

}  // namespace troupe::wire
