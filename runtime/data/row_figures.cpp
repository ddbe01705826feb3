#include "runtime/data/row_figures.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace troupe::data {
namespace {

constexpr std::uint64_t kFew = 100;  // rows below which a set is called small
constexpr double kOneSided = 0.95;   // share of one label
constexpr double kByLength = 0.75;   // share of pairs that length decides
constexpr double kCorrelated = 0.5;
constexpr double kRepeated = 0.01;  // share of rows that repeat another

// FNV-1a over whole tokens.
class Hash {
 public:
  void take(std::span<const std::int32_t> tokens) {
    for (const std::int32_t token : tokens)
      mix(static_cast<std::uint32_t>(token));
    mix(UINT64_MAX);  // where a part ends
  }
  std::uint64_t value() const { return state_; }

 private:
  void mix(std::uint64_t value) {
    state_ = (state_ ^ value) * 0x100000001B3u;
    state_ ^= state_ >> 29;
  }
  std::uint64_t state_ = 0xCBF29CE484222325u;
};

// What comes before the first learned token of a sequence.
std::span<const std::int32_t> prompt_of(const SupervisedRow& row) {
  if (!row.prompt.empty() || row.learn.empty()) return row.prompt;
  const auto first = std::ranges::find(row.learn, std::uint8_t{1}) - row.learn.begin();
  return row.answer.first(static_cast<std::size_t>(first));
}

std::string percent(double share) {
  return std::to_string(std::lround(100 * share)) + "%";
}

std::string two_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

double correlation(const std::vector<bool>& labels, const std::vector<std::uint64_t>& lengths) {
  const auto n = static_cast<double>(labels.size());
  double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double a = labels[i] ? 1 : 0, b = static_cast<double>(lengths[i]);
    x += a, y += b, xx += a * a, yy += b * b, xy += a * b;
  }
  const double spread = std::sqrt(std::max(0.0, n * xx - x * x) * std::max(0.0, n * yy - y * y));
  return spread > 0 ? (n * xy - x * y) / spread : 0;
}

}  // namespace

Spread spread_of(std::vector<std::uint64_t> lengths) {
  if (lengths.empty()) return {};
  std::ranges::sort(lengths);
  const auto at = [&](std::uint64_t hundredths) {
    const std::uint64_t rank = (hundredths * lengths.size() + 99) / 100;
    return lengths[std::max<std::uint64_t>(rank, 1) - 1];
  };
  Spread out{lengths.front(), at(50), at(90), at(99), lengths.back(), 0};
  for (const std::uint64_t length : lengths)
    out.sum += length;
  return out;
}

RowFigures::RowFigures(std::optional<RowKind> kind, std::uint64_t longest)
    : kind_(kind), longest_(longest) {}

void RowFigures::add(const SupervisedRow& row) {
  ++rows_;
  const auto prompt = prompt_of(row);
  const bool apart = !row.prompt.empty();
  const std::uint64_t answer = row.answer.size() - (apart ? 0 : prompt.size());
  const std::uint64_t whole = prompt.size() + std::max<std::uint64_t>(answer, row.rejected.size());
  lengths_[kWhole].push_back(whole);
  lengths_[kPrompt].push_back(prompt.size());
  lengths_[kAnswer].push_back(answer);
  if (kind_ == RowKind::kPair) lengths_[kRejected].push_back(row.rejected.size());
  if (longest_ > 0 && whole > longest_) {
    ++too_long_;
    tokens_over_ += whole - longest_;
  }
  Hash all, begin;
  all.take(row.prompt);
  all.take(row.answer);
  all.take(row.rejected);
  begin.take(prompt.empty() ? row.answer : prompt);
  all_.insert(all.value());
  prompts_.insert(begin.value());
  row_prompts_.push_back(begin.value());
  if (kind_ == RowKind::kPair) {
    longer_ += answer > row.rejected.size() ? 1 : 0;
    shorter_ += answer < row.rejected.size() ? 1 : 0;
  }
  if (kind_ == RowKind::kRated) {
    good_ += row.desirable ? 1 : 0;
    labels_.push_back(row.desirable);
  }
}

double RowFigures::length_and_label() const {
  return correlation(labels_, lengths_[kAnswer]);
}

std::uint64_t RowFigures::shared_with(const RowFigures& other) const {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      other.row_prompts_, [this](std::uint64_t hash) { return prompts_.contains(hash); }));
}

std::string RowFigures::warning_of_shared(const RowFigures& held_out) const {
  const std::uint64_t shared = shared_with(held_out);
  if (shared == 0) return "";
  return std::to_string(shared) + " of the " + std::to_string(held_out.rows()) +
         " held-out rows have a prompt of the training rows";
}

std::vector<std::string> RowFigures::warnings() const {
  std::vector<std::string> out;
  if (rows_ == 0) return out;
  const auto n = static_cast<double>(rows_);
  if (rows_ < kFew) {
    out.push_back("only " + std::to_string(rows_) +
                  " rows: they may be learned by heart; watch held-out rows (--eval.dataset)");
  }
  if (const std::uint64_t twice = repeated_rows(); static_cast<double>(twice) > kRepeated * n)
    out.push_back(std::to_string(twice) + " rows repeat another row");
  if (kind_ == RowKind::kRated) {
    const double good = static_cast<double>(good_) / n;
    if (good > kOneSided || good < 1 - kOneSided) {
      out.push_back(percent(good) +
                    " of the labels are good: one side has too few rows to compare with");
    }
    if (const double r = length_and_label(); std::abs(r) >= kCorrelated) {
      out.push_back(std::string(r > 0 ? "long" : "short") +
                    " answers are the good ones (correlation of length and label " + two_digits(r) +
                    "): the length may be learned instead");
    }
  }
  if (kind_ == RowKind::kPair) {
    const double share = static_cast<double>(std::max(longer_, shorter_)) / n;
    if (share >= kByLength && rows_ >= 10) {
      out.push_back("the chosen answer is the " +
                    std::string(longer_ > shorter_ ? "longer" : "shorter") + " one in " +
                    percent(share) + " of the pairs: the length may be learned instead");
    }
  }
  return out;
}

}  // namespace troupe::data
