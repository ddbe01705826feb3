#include "runtime/observe/tensorboard_writer.hpp"

#include "runtime/core/host_name.hpp"
#include "runtime/core/texts.hpp"
#include "runtime/observe/event_proto.hpp"
#include "runtime/observe/metric_names.hpp"

#include <unistd.h>

namespace troupe::observe {

core::Result<TensorboardWriter> TensorboardWriter::create(const std::filesystem::path& folder,
                                                          double wall_time_s,
                                                          std::optional<std::uint64_t> resumed_at) {
  const std::string host = core::host_name("host");
  std::filesystem::path path;
  std::error_code error;
  for (int number = 0; path.empty() || std::filesystem::exists(path, error); ++number) {
    path = folder / core::printed("events.out.tfevents.%ld.%s.%d.%d",
                                  static_cast<long>(wall_time_s), host.c_str(), ::getpid(), number);
  }
  TROUPE_TRY_ASSIGN(file, store::AppendFile::open(path));
  TensorboardWriter writer(std::move(file));
  TROUPE_TRY(writer.file_.append(framed(version_event(wall_time_s))));
  if (resumed_at) {
    // TensorBoard ignores what older files hold at the given step or after it.
    const auto next = static_cast<std::int64_t>(*resumed_at + 1);
    TROUPE_TRY(writer.file_.append(framed(session_start_event(wall_time_s, next))));
  }
  return writer;
}

core::Result<void> TensorboardWriter::drop_earlier(double wall_time_s) {
  return file_.append(framed(session_start_event(wall_time_s, 0)));
}

core::Result<void> TensorboardWriter::write(const MetricRow& row) {
  auto values = row.values;
  for (auto& [name, value] : values)
    name = metric_name(name, names_);
  return file_.append(
      framed(scalars_event(row.wall_time_s, static_cast<std::int64_t>(row.step), values)));
}

}  // namespace troupe::observe
