#include "runtime/core/device_name.hpp"

#include "runtime/core/texts.hpp"

namespace troupe::core {

std::string DeviceName::text() const {
  return gpu ? "cuda:" + std::to_string(ordinal) : "cpu";
}

Result<DeviceName> parse_device(std::string_view name) {
  constexpr std::string_view kCuda = "cuda";
  constexpr std::size_t kDigits_max = 3;
  if (name == "cpu") return DeviceName{};
  if (name == kCuda) return DeviceName{true, 0};
  if (name.starts_with("cuda:")) {
    const std::string_view digits = name.substr(kCuda.size() + 1);
    const int ordinal = number_of<int>(digits).value_or(-1);
    if (ordinal >= 0 && digits.size() <= kDigits_max) return DeviceName{true, ordinal};
  }
  return fail(ErrorCode::kConfig, "there is no device '" + std::string(name) + "'",
              "it is cpu, cuda or cuda:N (GPU N, counted from 0)");
}

}  // namespace troupe::core
