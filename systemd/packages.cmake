# The Debian packages, made by `cpack` in a build of preset release: see systemd/make-packages.
# Files outside the prefix (/etc, /lib/systemd) are installed by cpack alone, never by a plain
# `cmake --install`, which may be an ordinary user's.
set(debian ${CMAKE_CURRENT_SOURCE_DIR}/debian)
set(units /lib/systemd/system)

file(GLOB unit_files CONFIGURE_DEPENDS *.service)
install(FILES ${unit_files} DESTINATION ${units} COMPONENT daemon EXCLUDE_FROM_ALL)
install(FILES batchwrightd.toml DESTINATION /etc/batchwright COMPONENT daemon EXCLUDE_FROM_ALL)
foreach(kind sysusers tmpfiles)
  install(FILES batchwright.${kind}.conf DESTINATION lib/${kind}.d RENAME batchwright.conf
    COMPONENT daemon EXCLUDE_FROM_ALL)
endforeach()
install(DIRECTORY drop-ins deploy DESTINATION share/doc/batchwright/examples COMPONENT daemon
  EXCLUDE_FROM_ALL PATTERN make-image EXCLUDE)
install(PROGRAMS deploy/containers/make-image DESTINATION share/doc/batchwright/examples/deploy/containers
  COMPONENT daemon EXCLUDE_FROM_ALL)
file(GLOB monitoring CONFIGURE_DEPENDS prometheus.yml alerts.yml grafana.json)
install(FILES ${monitoring} DESTINATION share/doc/batchwright/examples COMPONENT daemon
  EXCLUDE_FROM_ALL)

# What Debian wants of every package: whose work it is, and what changed.
set(changelog ${CMAKE_CURRENT_BINARY_DIR}/changelog.Debian.gz)
add_custom_command(OUTPUT ${changelog} COMMAND ${GZIP} -9nc ${debian}/changelog > ${changelog}
  DEPENDS ${debian}/changelog VERBATIM)
add_custom_target(changelog ALL DEPENDS ${changelog})
function(debian_package component name)
  install(FILES ${debian}/overrides DESTINATION share/lintian/overrides RENAME ${name}
    COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES ${debian}/copyright ${changelog} DESTINATION share/doc/${name}
    COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()
debian_package(daemon batchwright)
debian_package(client libbatchwright1)
debian_package(dev libbatchwright-dev)
debian_package(python python3-batchwright)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME batchwright)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "Batchwright maintainers <batchwright@localhost>")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_COMPONENTS_ALL daemon client dev python)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Our own library is named below, by its version.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(same_version "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")

set(CPACK_DEBIAN_DAEMON_PACKAGE_NAME batchwright)
set(CPACK_DEBIAN_DAEMON_PACKAGE_SECTION science)
set(CPACK_DEBIAN_DAEMON_PACKAGE_DEPENDS "libbatchwright1 ${same_version}, \
systemd | systemd-standalone-sysusers")
set(CPACK_DEBIAN_DAEMON_PACKAGE_SUGGESTS "prometheus, python3-batchwright")
set(CPACK_DEBIAN_DAEMON_PACKAGE_CONTROL_EXTRA
  "${debian}/conffiles;${debian}/postinst;${debian}/prerm;${debian}/postrm")
set(CPACK_COMPONENT_DAEMON_DESCRIPTION "batches of variable-length data for training jobs
 batchwrightd plans the batches of every epoch so that little of them is
 padding, assembles each once into shared memory, and hands it to any number
 of trainers without another copy. The command batchwright makes datasets of
 features, inspects them, shows plans, and watches a running daemon.")

set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME libbatchwright1)
set(CPACK_DEBIAN_CLIENT_PACKAGE_SECTION libs)
# make-packages writes symbols from the libraries that were built.
set(CPACK_DEBIAN_CLIENT_PACKAGE_CONTROL_EXTRA
  "${debian}/triggers;${debian}/shlibs;${CMAKE_CURRENT_BINARY_DIR}/symbols")
set(CPACK_COMPONENT_CLIENT_DESCRIPTION "batches of a batchwrightd in a trainer's own memory
 The library a trainer links to read a daemon's batches in place, and the one
 that writes datasets.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libbatchwright-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libbatchwright1 ${same_version}")
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_COMPONENT_DEV_DESCRIPTION "headers of libbatchwright
 The C interfaces of trainers and writers, the header-only C++ face, and files
 for pkg-config.")

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-batchwright)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
  "libbatchwright1 ${same_version}, python3 (>= 3.9), python3-numpy (>= 1:1.20)")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS python3-torch)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
  "${debian}/python/postinst;${debian}/python/prerm")
set(CPACK_COMPONENT_PYTHON_DESCRIPTION "batches of a batchwrightd as NumPy arrays and torch tensors
 Without a copy: a batch is read where the daemon built it. Writes datasets,
 too.")

include(CPack)
