#include "apps/report/step_files.hpp"

#include "runtime/store/run_folder.hpp"

#include <deque>
#include <utility>

namespace troupe::report {

StepFiles list_steps(const std::filesystem::path& folder, const char* ending) {
  namespace fs = std::filesystem;
  StepFiles out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const auto step = store::step_of(it->path().stem().string());
    std::error_code no_file;
    if (!step || it->path().extension() != ending || !it->is_regular_file(no_file)) continue;
    const auto bytes = it->file_size(no_file);
    if (no_file) continue;
    out.bytes += bytes;
    out.files.emplace(*step, it->path());
  }
  return out;
}

std::vector<std::size_t> spread_order(std::size_t count) {
  std::vector<std::size_t> order;
  if (count > 0) order.push_back(count - 1);
  if (count > 1) order.push_back(0);
  // Open intervals between places that are in the list.
  std::deque<std::pair<std::size_t, std::size_t>> gaps;
  if (count > 2) gaps.emplace_back(0, count - 1);
  while (!gaps.empty()) {
    const auto [low, high] = gaps.front();
    gaps.pop_front();
    const std::size_t middle = low + (high - low) / 2;
    order.push_back(middle);
    if (middle - low > 1) gaps.emplace_back(low, middle);
    if (high - middle > 1) gaps.emplace_back(middle, high);
  }
  return order;
}

std::vector<std::size_t> spread_places(std::size_t count, std::size_t wanted) {
  std::vector<std::size_t> places;
  if (wanted > count) wanted = count;
  for (std::size_t i = 0; i < wanted; ++i)
    places.push_back(i * count / wanted);
  return places;
}

}  // namespace troupe::report
