// All functions of a vector level, and its table. The including source must define the level's
// vector types and tile sizes first.
#pragma once

#include "kernels/cpu/activations.hpp"
#include "kernels/cpu/attention.hpp"
#include "kernels/cpu/attention_backward.hpp"
#include "kernels/cpu/gemm_entry.hpp"
#include "kernels/cpu/mix_rows.hpp"
#include "kernels/cpu/optimizer.hpp"
#include "kernels/cpu/pack_weights.hpp"
#include "kernels/cpu/rows.hpp"
#include "kernels/cpu/vocab.hpp"
// Must come after the functions that it lists.
#include "kernels/table.hpp"
