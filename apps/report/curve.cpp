#include "apps/report/curve.hpp"

#include <cmath>

namespace troupe::report {

void Curve::join(Bucket& into, const Bucket& from) {
  if (from.least.value) {
    if (!into.least.value || *from.least.value < *into.least.value) into.least = from.least;
    if (!into.greatest.value || *from.greatest.value > *into.greatest.value)
      into.greatest = from.greatest;
  }
  into.last_step = from.last_step;
  into.sum += from.sum;
  into.finite += from.finite;
  into.values += from.values;
  into.broken = into.broken || from.broken;
}

// Joins each two neighbours; all buckets are full.
void Curve::halve() {
  std::vector<Bucket> joined;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (i % 2 == 0) {
      joined.push_back(buckets_[i]);
    } else {
      join(joined.back(), buckets_[i]);
    }
  }
  buckets_ = std::move(joined);
  stride_ *= 2;
}

void Curve::add(double step, double value) {
  Bucket one;
  one.values = 1;
  one.first_step = one.last_step = step;
  if (std::isfinite(value)) {
    one.least = one.greatest = {step, value};
    one.sum = value;
    one.finite = 1;
    if (count_++ == 0) first_ = one.least;
    last_ = one.least;
    sum_ += value;
  } else {
    one.broken = true;
    ++not_finite_;
  }
  const bool full = buckets_.empty() || buckets_.back().values >= stride_;
  if (full && buckets_.size() >= buckets_max_) halve();
  if (buckets_.empty() || buckets_.back().values >= stride_) {
    buckets_.push_back(one);
  } else {
    join(buckets_.back(), one);
  }
}

std::vector<CurvePoint> Curve::points() const {
  std::vector<CurvePoint> points;
  for (const Bucket& bucket : buckets_) {
    if (bucket.least.value) {
      const bool falls = bucket.greatest.step < bucket.least.step;
      const CurvePoint &before = falls ? bucket.greatest : bucket.least,
                       &after = falls ? bucket.least : bucket.greatest;
      points.push_back(before);
      if (after.step != before.step) points.push_back(after);
    }
    if (bucket.broken && !points.empty() && points.back().value)
      points.push_back({points.back().step, std::nullopt});
  }
  const bool ends = count_ == 0 || (!points.empty() && points.back().step >= last_.step);
  if (!ends) points.push_back(last_);
  return points;
}

std::vector<CurvePoint> Curve::means() const {
  std::vector<CurvePoint> points;
  for (const Bucket& bucket : buckets_) {
    if (bucket.finite == 0) continue;
    const double step = bucket.first_step + (bucket.last_step - bucket.first_step) / 2;
    points.push_back({step, bucket.sum / static_cast<double>(bucket.finite)});
  }
  return points;
}

}  // namespace troupe::report
