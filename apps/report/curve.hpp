// A curve of one metric with bounded memory. Once there are more values than buckets, each bucket
// holds several successive values and keeps the least and the greatest of them with their steps, so
// no peak is lost, and their mean. Values that are not finite are counted and break the line. A
// value type.
#pragma once

#include "apps/report/limits.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::report {

struct CurvePoint {
  double step = 0;
  std::optional<double> value;  // nullopt: the line is broken here

  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

class Curve {
 public:
  explicit Curve(std::size_t buckets_max = limits::kReportCurveBuckets_max)
      : buckets_max_(buckets_max) {}

  // In the order of the file.
  void add(double step, double value);

  // At most two points a bucket, and the breaks between them; the last value is always there.
  std::vector<CurvePoint> points() const;
  // The mean of each bucket, at the middle of its steps.
  std::vector<CurvePoint> means() const;

  std::uint64_t count() const noexcept { return count_; }  // of finite values
  std::uint64_t not_finite() const noexcept { return not_finite_; }
  // How many values each bucket covers; it shows the least and the greatest. 1: all are shown.
  std::uint64_t bucket_values() const noexcept { return stride_; }
  std::optional<double> first() const noexcept { return first_.value; }
  std::optional<double> last() const noexcept { return last_.value; }
  double last_step() const noexcept { return last_.step; }
  double sum() const noexcept { return sum_; }

 private:
  struct Bucket {
    CurvePoint least, greatest;
    double first_step = 0, last_step = 0;
    double sum = 0;
    std::uint64_t finite = 0, values = 0;  // finite or not
    bool broken = false;                   // one of them is not finite
  };
  static void join(Bucket& into, const Bucket& from);
  void halve();

  std::size_t buckets_max_;
  std::vector<Bucket> buckets_;
  std::uint64_t stride_ = 1;
  std::uint64_t count_ = 0, not_finite_ = 0;
  double sum_ = 0;
  CurvePoint first_, last_;
};

}  // namespace troupe::report
