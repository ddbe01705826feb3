// `troupe doctor`: what this machine offers and which bounds hold. Looks only; changes nothing.
#include "apps/cli/system_facts.hpp"
#include "apps/troupe/commands.hpp"
#include "apps/troupe/doctor_gpus.hpp"
#include "apps/troupe/doctor_models.hpp"
#include "kernels/ops.hpp"
#include "runtime/core/limit.hpp"
#include "runtime/learn/trainers.hpp"
#include "runtime/model/spec.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace troupe::app {
namespace {

using namespace std::chrono_literals;

#undef TROUPE_LIMIT
#define TROUPE_LIMIT(constant, value, shown, unit) {shown, value, unit},
constexpr core::LimitRow kLimits[] = {
#include "actors/limits.def"
#include "apps/serving/limits.def"
#include "apps/session/limits.def"
#include "runtime/async/limits.def"
#include "runtime/cluster/limits.def"
#include "runtime/core/limits.def"
#include "runtime/data/limits.def"
#include "runtime/engine/limits.def"
#include "runtime/net/limits.def"
#include "runtime/parse/limits.def"
#include "runtime/store/limits.def"
#include "runtime/text/limits.def"
#include "runtime/weights/limits.def"
#include "runtime/wire/limits.def"
};

constexpr const char* kDoctorHelp =
    "usage: troupe doctor [--model M] [--run-path DIR]\n"
    "       troupe doctor --gpus [--json]\n"
    "\n"
    "Prints processor and kernel level, cores, memory, free disk, LibTorch, NVIDIA GPUs, a trial of\n"
    "every family of models, and the table of limits.\n"
    "--model M       also look the model up and say what it is\n"
    "--run-path DIR  the disk that holds the run folder (default: the current folder)\n"
    "--gpus          the GPUs alone; with --json as one JSON line, or exit 3 where there is none\n";

void print_processor() {
  constexpr std::pair<kernels::Isa, const char*> kLevels[] = {
      {kernels::Isa::kReference, "reference"},
      {kernels::Isa::kAvx2, "avx2"},
      {kernels::Isa::kAvx512, "avx512"},
  };
  std::string levels;
  for (const auto& [isa, name] : kLevels) {
    if (!kernels::isa_available(isa)) continue;
    if (!levels.empty()) levels += ", ";
    levels += name;
    if (&kernels::ops() == &kernels::ops_for(isa)) levels += " (active)";
  }
  std::printf("processor   %s\n", processor_name().c_str());
  std::printf("kernels     %s; TROUPE_ISA=NAME forces one\n", levels.c_str());
  constexpr kernels::PanelDtype kDtypes[] = {kernels::PanelDtype::kF32, kernels::PanelDtype::kBf16,
                                             kernels::PanelDtype::kInt8,
                                             kernels::PanelDtype::kBf16Compute};
  std::string dtypes;
  for (const kernels::PanelDtype dtype : kDtypes) {
    if (!kernels::panel_dtype_available(kernels::ops(), dtype)) continue;
    if (!dtypes.empty()) dtypes += ", ";
    dtypes += kernels::name_of(dtype);
  }
  std::printf("dtypes      %s (--dtype of weights)\n", dtypes.c_str());
  std::printf("cores       %d usable\n", usable_cores());
}

void print_memory_and_disk(const std::string& run_path) {
  const MemoryFacts memory = memory_facts();
  std::printf("memory      %s free of %s", bytes_text(memory.available_bytes).c_str(),
              bytes_text(memory.total_bytes).c_str());
  if (memory.limit_bytes > 0) {
    std::printf(", limited to %s", bytes_text(memory.limit_bytes).c_str());
  }
  const DiskFacts disk = disk_facts(run_path);
  std::printf("\ndisk        %s free of %s (%s)\n", bytes_text(disk.free_bytes).c_str(),
              bytes_text(disk.total_bytes).c_str(), run_path.c_str());
}

// What training would load. Looks only.
void print_libtorch() {
  const auto found = learn::find_trainers();
  if (!found) {
    std::printf("libtorch    none: %s\n", found.error().message.c_str());
    return;
  }
  const std::string& version = found->torch.version;
  std::printf("libtorch    %s%s%s, for training alone (TROUPE_TORCH names another)\n",
              version.c_str(), version.empty() ? "" : " in ", found->torch.folder.c_str());
}

core::Result<void> print_model(const std::string& name) {
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(name));
  TROUPE_TRY_ASSIGN(spec, model::read_spec(folder));
  std::printf("model       %s: %s, %.1f M parameters, context %lld\n", folder.c_str(),
              spec.architecture.c_str(), static_cast<double>(spec.parameter_count()) / 1e6,
              static_cast<long long>(spec.context));
  return {};
}

core::Result<void> run_doctor_gpus(Words words) {
  if (words.empty()) {
    print_gpus();
    return {};
  }
  if (words.size() == 1 && words[0] == "--json") return print_gpus_json();
  return core::fail(core::ErrorCode::kConfig,
                    "doctor --gpus: unknown flag '" + words[0] + "'; there is --json");
}

}  // namespace

core::Result<void> run_doctor(Words words) {
  if (!words.empty() && words[0] == "--gpus") return run_doctor_gpus(words.subspan(1));
  std::string model, run_path = ".";
  for (std::size_t i = 0; i < words.size(); i += 2) {
    if (words[i] == "--help" || words[i] == "-h") {
      std::fputs(kDoctorHelp, stdout);
      return {};
    }
    std::string* target = words[i] == "--model"      ? &model
                          : words[i] == "--run-path" ? &run_path
                                                     : nullptr;
    if (target == nullptr) {
      return core::fail(core::ErrorCode::kConfig,
                        "doctor: unknown flag '" + words[i] + "'; see troupe doctor --help");
    }
    if (i + 1 == words.size()) {
      return core::fail(core::ErrorCode::kConfig, "doctor: " + words[i] + " needs a value");
    }
    *target = words[i + 1];
  }
  print_processor();
  print_memory_and_disk(run_path);
  print_libtorch();
  print_gpus();
  if (!model.empty()) TROUPE_TRY(print_model(model));
  TROUPE_TRY(print_families());
  std::printf("\nlimits\n");
  for (const core::LimitRow& row : kLimits) {
    std::printf("  %-22s %12llu %s\n", row.name, static_cast<unsigned long long>(row.value),
                row.unit);
  }
  return {};
}

}  // namespace troupe::app
