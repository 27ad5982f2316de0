# Targets by the folder: a new file in a room is built without a change to any CMake file.

# dsplan_glob(VARIABLE DIRECTORY [RECURSE]): the C++ sources of a folder.
function(dsplan_glob variable directory)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "RECURSE" "" "")
  if(ARG_RECURSE)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${directory}/*.cpp")
  else()
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${directory}/*.cpp")
  endif()
  set(${variable} "${sources}" PARENT_SCOPE)
endfunction()

# dsplan_room(NAME SOURCES_FROM DIRECTORY [RECURSE] [EXCLUDE FILE…] [DEPENDS TARGET…])
# One static library from the sources of a folder.
function(dsplan_room name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "RECURSE" "SOURCES_FROM" "EXCLUDE;DEPENDS")
  if(ARG_RECURSE)
    dsplan_glob(sources ${ARG_SOURCES_FROM} RECURSE)
  else()
    dsplan_glob(sources ${ARG_SOURCES_FROM})
  endif()
  foreach(excluded IN LISTS ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "/${excluded}$")
  endforeach()
  # The empty source keeps a room that has only headers, or only embedded files, an ordinary library.
  set(placeholder "${CMAKE_BINARY_DIR}/generated/empty.cpp")
  if(NOT EXISTS "${placeholder}")
    file(WRITE "${placeholder}" "")
  endif()
  if(NOT sources)
    set(sources "${placeholder}")
  endif()
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} PRIVATE dsplan_warnings)
endfunction()

# dsplan_program(NAME SOURCES_FROM DIRECTORY DEPENDS TARGET…)
# An executable from main.cpp, and a library cli_NAME from the other sources, so that tests can link them.
function(dsplan_program name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "SOURCES_FROM" "DEPENDS")
  dsplan_room(cli_${name} SOURCES_FROM ${ARG_SOURCES_FROM} RECURSE EXCLUDE main.cpp DEPENDS ${ARG_DEPENDS})
  add_executable(${name} "${PROJECT_SOURCE_DIR}/${ARG_SOURCES_FROM}/main.cpp")
  target_link_libraries(${name} PRIVATE cli_${name} dsplan_warnings)
  install(TARGETS ${name} RUNTIME)
endfunction()

# dsplan_tests(NAME SOURCES_FROM DIRECTORY [RECURSE] [ONE_ENTRY] [LABEL LABEL] [DEPENDS TARGET…])
# One GoogleTest executable from a folder, skipped while the folder has no source. It runs from the root of
# the source tree. Each case is a ctest entry, or with ONE_ENTRY (for programs that are slow to start) the
# executable is one. Suites whose name begins with Nightly have the label `nightly` instead. A main.cpp in the
# folder replaces GoogleTest's.
function(dsplan_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "RECURSE;ONE_ENTRY" "SOURCES_FROM;LABEL" "DEPENDS")
  if(ARG_RECURSE)
    dsplan_glob(sources ${ARG_SOURCES_FROM} RECURSE)
  else()
    dsplan_glob(sources ${ARG_SOURCES_FROM})
  endif()
  if(NOT sources)
    return()
  endif()
  set(main GTest::gmock_main)
  if("${sources}" MATCHES "/main\\.cpp(;|$)")
    set(main GTest::gmock)
  endif()
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} ${main} dsplan_warnings)

  # What starts ranks runs alone on a small machine.
  set(processors 1)
  if(ARG_LABEL STREQUAL "runtime")
    set(processors 2)
  endif()
  set(label_everyday ${ARG_LABEL})
  set(label_nightly nightly)
  if(ARG_ONE_ENTRY)
    set(properties TIMEOUT 2400 PROCESSORS ${processors} ENVIRONMENT OMP_NUM_THREADS=1)
    add_test(NAME ${name} COMMAND ${name} "--gtest_filter=-Nightly*"
             WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    set_tests_properties(${name} PROPERTIES ${properties} LABELS ${label_everyday})
    add_test(NAME ${name}.nightly COMMAND ${name} "--gtest_filter=Nightly*"
             WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    set_tests_properties(${name}.nightly PROPERTIES ${properties} LABELS ${label_nightly} TIMEOUT 43200)
  else()
    foreach(kind IN ITEMS everyday nightly)
      set(filter "-Nightly*")
      if(kind STREQUAL "nightly")
        set(filter "Nightly*")
      endif()
      gtest_discover_tests(${name} TEST_FILTER "${filter}" TEST_LIST ${name}_${kind}
                           TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST
                           WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
                           PROPERTIES TIMEOUT 300 PROCESSORS ${processors} LABELS ${label_${kind}})
    endforeach()
  endif()
endfunction()
