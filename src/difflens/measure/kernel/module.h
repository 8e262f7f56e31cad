/* What the files that Python sees share: the state of the module. */
#ifndef DIFFLENS_MODULE_H
#define DIFFLENS_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "scan.h"

/* What a tensor of a framework is asked, as Python's own strings. */
enum question { GRAD, DTYPE, IS_CPU, IS_CONTIGUOUS, NUMEL, DATA_PTR, VERSION, QUESTIONS };

struct module_state {
    const struct loops *loops;
    PyObject *questions[QUESTIONS];
};

/* Set up the questions; -1 with an error set where memory is short. */
int difflens_start_tensors(struct module_state *state);

PyObject *difflens_read(PyObject *module, PyObject *args);
PyObject *difflens_read_gradients(PyObject *module, PyObject *args);
PyObject *difflens_read_weights(PyObject *module, PyObject *args);
PyObject *difflens_are_as_read(PyObject *module, PyObject *args);
PyObject *difflens_bytes_of(PyObject *module, PyObject *args);

#endif
