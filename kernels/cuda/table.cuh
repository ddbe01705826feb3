// The host side of each operation of kernels/ops.hpp on a device: checks nothing, enqueues.
// Sources: gemm.cu, gemm_bf16.cu (products of bfloat16 on tensor cores), pack.cu, rows.cu,
// activations.cu, attention.cu, attention_backward.cu, vocab.cu, rows_backward.cu, optimizer.cu,
// probes.cu.
#pragma once

#include "kernels/ops.hpp"

namespace troupe::kernels::cuda {

const Ops& table();

}  // namespace troupe::kernels::cuda
