# dsplan_embed(TARGET T HEADER H FUNCTION F FILES PATTERN…)
# Compiles text files into a target. The header H declares F, a function without arguments that returns
# std::span<const specs::EmbeddedFile>: the files, sorted by name.
function(dsplan_embed)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "TARGET;HEADER;FUNCTION" "FILES")
  list(TRANSFORM ARG_FILES PREPEND "${PROJECT_SOURCE_DIR}/")
  file(GLOB files CONFIGURE_DEPENDS ${ARG_FILES})
  list(SORT files)
  string(REPLACE "::" "_" stem "${ARG_FUNCTION}")
  set(source "${CMAKE_BINARY_DIR}/generated/${stem}.cpp")
  add_custom_command(
    OUTPUT "${source}"
    COMMAND ${CMAKE_COMMAND} "-DSOURCE=${source}" "-DHEADER=${ARG_HEADER}" "-DFUNCTION=${ARG_FUNCTION}"
            "-DFILES=${files}" -P "${PROJECT_SOURCE_DIR}/cmake/write_embedded_files.cmake"
    DEPENDS ${files} "${PROJECT_SOURCE_DIR}/cmake/write_embedded_files.cmake"
    COMMENT "Embedding ${ARG_FILES}" VERBATIM)
  target_sources(${ARG_TARGET} PRIVATE "${source}")
endfunction()
