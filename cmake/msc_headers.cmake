# Headers that programs and plug-ins may use. All other headers are internal, and what they declare is hidden.
# To add one, list it here with all headers that it includes, and put its contents between the macros of
# base/public.h.
set(public_headers
    agents/agent.h
    base/alloc.h
    base/cancel.h
    base/hash.h
    base/json.h
    base/json_get.h
    base/log.h
    base/param.h
    base/public.h
    base/rng.h
    base/status.h
    base/str.h
    checks/verify.h
    config/config.h
    data/array.h
    data/array_codes.h
    data/array_file.h
    data/dataset.h
    data/dtype.h
    data/gguf_block.h
    data/npy.h
    data/safetensors.h
    env/api/drop.h
    env/api/env.h
    env/api/space.h
    env/api/trial.h
    env/distill.h
    env/env.h
    env/gym.h
    env/loss.h
    graph/channels.h
    graph/cost.h
    graph/edit.h
    graph/external.h
    graph/graph.h
    graph/notes.h
    graph/onnx/load.h
    graph/onnx/onnx.h
    graph/op.h
    graph/op_attrs.h
    graph/operators.h
    graph/ops.def
    graph/passes/bind.h
    graph/passes/extract.h
    graph/passes/prune.h
    graph/quant.h
    graph/rules/rules.h
    graph/site.h
    graph/target.h
    graph/view.h
    graph/wide.h
    kernels/backend.h
    kernels/engine/backends.h
    kernels/engine/evaluator.h
    kernels/plan.h
    model/collect.h
    model/export.h
    model/model.h
    model/operators.h
    model/pieces.h
    model/program_id.h
    model/resident.h
    model/strategies.h
    model/track.h
    pipeline/processor.h
    pipeline/processor_options.h
    pipeline/processor_result.h
    records/record.h
    records/record_front.h
    records/record_header.h
    records/record_query.h
    records/record_scan.h
    results/analysis.h
    results/history.h
    results/phases.h
    results/report.h
    search/estimate.h
    search/search.h
    search/warm.h
    supervise/supervise.h
    tools/quantizer.h
    tools/range.h
    tools/strategy.h)

# The headers as they are installed: ${MSC_PUBLIC_INCLUDE_DIR}/mscgym/base/log.h and so on. Users write
# #include <mscgym/base/log.h>, or <mscgym/mscgym.h> for all.
set(MSC_PUBLIC_INCLUDE_DIR "${PROJECT_BINARY_DIR}/include")
set(written "")
set(all "")
list(JOIN public_headers "," names)
foreach(header IN LISTS public_headers)
    set(out "${MSC_PUBLIC_INCLUDE_DIR}/mscgym/${header}")
    add_custom_command(OUTPUT "${out}"
        COMMAND "${CMAKE_COMMAND}" "-DIN=${PROJECT_SOURCE_DIR}/${header}" "-DOUT=${out}" "-DHEADERS=${names}"
            -P "${PROJECT_SOURCE_DIR}/cmake/msc_header.cmake"
        DEPENDS "${PROJECT_SOURCE_DIR}/${header}" "${PROJECT_SOURCE_DIR}/cmake/msc_header.cmake"
        COMMENT "Writing public header ${header}"
        VERBATIM)
    list(APPEND written "${out}")
    if(header MATCHES "\\.h$")
        string(APPEND all "#include <mscgym/${header}>\n")
    endif()
    cmake_path(GET header PARENT_PATH folder)
    install(FILES "${out}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/mscgym/${folder}" COMPONENT development)
endforeach()
file(CONFIGURE OUTPUT "${MSC_PUBLIC_INCLUDE_DIR}/mscgym/mscgym.h" @ONLY CONTENT
"// All of mscgym that programs and plug-ins may use.
#ifndef MSC_MSCGYM_H
#define MSC_MSCGYM_H

${all}
#endif
")
install(FILES "${MSC_PUBLIC_INCLUDE_DIR}/mscgym/mscgym.h"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/mscgym" COMPONENT development)
add_custom_target(msc_public_headers ALL DEPENDS ${written})
