#include "runtime/learn/model/trained_window.hpp"

#include "kernels/ops.hpp"

#include <algorithm>

namespace troupe::learn {

float* TrainedWindow::read(core::TeamRunner& team, model::ParamStore& params, core::Range place) {
  if (whole_) return params.data() + place.begin;
  copy_.reserve_discard(place.size(), team.memory());
  copy(team, params, place, true);
  return copy_.data();
}

void TrainedWindow::write(core::TeamRunner& team, model::ParamStore& params, core::Range place) {
  if (!whole_) copy(team, params, place, false);
}

void TrainedWindow::copy(core::TeamRunner& team,
                         model::ParamStore& params,
                         core::Range place,
                         bool read) {
  team.run([&](core::Team member) {
    for (const TrainedRun& run : runs_) {
      const core::Range part{std::max(run.moment, place.begin),
                             std::min(run.moment + run.count, place.end)};
      if (part.empty()) continue;
      const core::Range own = member.share(part.size(), 64);
      if (own.empty()) continue;
      float* const in_params = params.data() + run.param + (part.begin - run.moment) + own.begin;
      float* const in_window = copy_.data() + (part.begin - place.begin) + own.begin;
      kernels::ops().copy_rows({.columns = own.size(),
                                .from = read ? in_params : in_window,
                                .ldf = own.size(),
                                .to = read ? in_window : in_params,
                                .ldt = own.size()},
                               {0, 1});
    }
  });
}

}  // namespace troupe::learn
